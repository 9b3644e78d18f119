/* Reads documents: lines of JSON from a file named *.jsonl, else text with blank lines between documents. */

#include "base/digest.h"
#include "base/file.h"
#include "base/json/reader.h"
#include "runtime/exits/calibrate/calibrate_internal.h"
#include "runtime/runtime.h"

typedef struct {
  const char *path;
  const lp_bundle *bundle;
  lp_documents *out;
  lp_diag *diag;
} document_reader;

static lp_loc loc_at(const document_reader *reader, int32_t line) {
  return (lp_loc){.file = reader->path, .line = line};
}

static lp_status encode(const document_reader *reader, const char *text, size_t size, lp_corpus_document *out) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(reader->bundle);
  if (!tokenizer)
    return lp_error(reader->diag, loc_at(reader, out->line),
                    "the bundle has no tokenizer for this text; give lines of token ids as .jsonl");
  return lp_tokenizer_encode(tokenizer, text, size, true, &out->ids, reader->diag);
}

/* Takes over the ids, unless there are none. `judged` is the length of the prompt when it comes in, and the number of
 * judged positions in the result. */
static lp_status add(const document_reader *reader, lp_corpus_document *document) {
  for (size_t i = 0; i < document->ids.count; i++)
    if (document->ids.data[i] >= lp_bundle_vocab(reader->bundle))
      return lp_error(reader->diag, loc_at(reader, document->line),
                      "token %" PRId32 " lies outside of the vocabulary of %" PRId32, document->ids.data[i],
                      lp_bundle_vocab(reader->bundle));
  if (document->ids.count == 0) return LP_OK;
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, document->ids.data, document->ids.count * sizeof *document->ids.data);
  lp_sha256_hex(&sha, document->digest);
  document->judged = (int64_t)document->ids.count - (document->judged > 0 ? document->judged - 1 : 0);
  lp_vec_push(reader->out, *document);
  *document = (lp_corpus_document){0};
  return LP_OK;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *end_of_line(const char *at, const char *end) {
  const char *found = memchr(at, '\n', (size_t)(end - at));
  return found ? found : end;
}

static bool is_blank(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
    at++;
  return at == end;
}

static lp_status read_text(const document_reader *reader, const char *text, const char *end) {
  int32_t line = 1;
  while (text < end) {
    const char *next = end_of_line(text, end), *begin = text, *last = text;
    lp_corpus_document document = {.line = line};
    for (; text < end && !is_blank(text, next); line++) {
      last = next;
      text = next < end ? next + 1 : end;
      next = end_of_line(text, end);
    }
    if (last > begin) {
      lp_status status = encode(reader, begin, (size_t)(last - begin), &document);
      if (status == LP_OK) status = add(reader, &document);
      lp_vec_free(&document.ids);
      if (status != LP_OK) return status;
    }
    text = next < end ? next + 1 : end;
    line++;
  }
  return LP_OK;
}

/* ---- lines of JSON ----------------------------------------------------------------------------------------------- */

static lp_status read_ids(const document_reader *reader, const lp_json *at, lp_corpus_document *out) {
  LP_TRY(lp_json_array(at, reader->diag));
  LP_FOR_ITEMS(item, at) {
    int32_t id = 0;
    LP_TRY(lp_json_i32(&item, 0, INT32_MAX, &id, reader->diag));
    lp_vec_push(&out->ids, id);
  }
  return LP_OK;
}

/* Reads tokens, of which the first `prompt` are given. The predictions after the last given token and after all later
 * ones are judged. */
static lp_status read_answer(const document_reader *reader, const lp_json *root, const lp_json *tokens,
                             lp_corpus_document *out) {
  lp_json prompt = lp_json_member(root, "prompt");
  LP_TRY(read_ids(reader, tokens, out));
  if (!prompt.value) return LP_OK;
  return lp_json_i64(&prompt, 0, (int64_t)out->ids.count, &out->judged, reader->diag);
}

/* "text", [1, 2, 3], {"text": "text"} or {"tokens": [1, 2, 3], "prompt": 2}; other members are ignored. */
static lp_status read_value(const document_reader *reader, const lp_json *root, lp_corpus_document *out) {
  lp_json text = lp_json_member(root, "text"), tokens = lp_json_member(root, "tokens");
  const char *words = NULL;
  if (lp_json_is(root, LP_JSON_ARRAY)) return read_ids(reader, root, out);
  if (tokens.value) return read_answer(reader, root, &tokens, out);
  bool object = lp_json_is(root, LP_JSON_OBJECT);
  if (object && !text.value) return lp_json_error(root, reader->diag, "neither \"text\" nor \"tokens\"");
  LP_TRY(lp_json_text(object ? &text : root, &words, reader->diag));
  return encode(reader, words, strlen(words), out);
}

/* Parses a line; an error names the line of the file. */
static lp_status parse_line(const document_reader *reader, const char *text, size_t size, int32_t line,
                            lp_json_document **out) {
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  lp_status status = lp_json_parse(reader->path, text, size, 0, out, inner);
  if (status != LP_OK) {
    const lp_diag_entry *found = lp_diag_get(inner, 0);
    lp_loc loc = {.file = reader->path, .line = line, .col = found->loc.col};
    status = lp_error(reader->diag, loc, "%s", found->text);
  }
  return status;
}

static lp_status read_line(const document_reader *reader, const char *text, size_t size, int32_t line) {
  lp_json_document *parsed = NULL;
  LP_TRY(parse_line(reader, text, size, line, &parsed));
  LP_OWNED(lp_free_at) char *place = lp_alloc(strlen(reader->path) + 16);
  (void)sprintf(place, "%s:%" PRId32, reader->path, line);
  lp_json root = lp_json_root(place, parsed);
  lp_corpus_document document = {.line = line};
  lp_status status = read_value(reader, &root, &document);
  if (status == LP_OK) status = add(reader, &document);
  lp_vec_free(&document.ids);
  lp_json_free(parsed);
  return status;
}

static lp_status read_lines(const document_reader *reader, const char *text, const char *end) {
  for (int32_t line = 1; text < end; line++) {
    const char *next = end_of_line(text, end);
    if (!is_blank(text, next)) LP_TRY(read_line(reader, text, (size_t)(next - text), line));
    text = next < end ? next + 1 : end;
  }
  return LP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int by_digest(const void *a, const void *b) {
  const lp_corpus_document *x = a, *y = b;
  int order = strcmp(x->digest, y->digest);
  return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static void drop_repeats(lp_documents *documents, int64_t *repeats) {
  size_t kept = 0;
  LP_FOR_VEC(lp_corpus_document, at, documents) {
    if (kept > 0 && lp_streq(documents->data[kept - 1].digest, at->digest)) {
      lp_vec_free(&at->ids);
      (*repeats)++;
    } else {
      documents->data[kept++] = *at;
    }
  }
  documents->count = kept;
}

lp_status lp_documents_read(const char *path, const lp_bundle *bundle, lp_documents *out, lp_calibration_report *report,
                            lp_diag *diag) {
  document_reader reader = {.path = path, .bundle = bundle, .out = out, .diag = diag};
  char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, text, size);
  lp_sha256_hex(&sha, report->data_sha256);
  lp_status status = (lp_has_suffix(path, ".jsonl") ? read_lines : read_text)(&reader, text, text + size);
  free(text);
  if (status != LP_OK) return status;
  if (out->count > 0) qsort(out->data, out->count, sizeof *out->data, by_digest);
  drop_repeats(out, &report->repeats);
  return LP_OK;
}

void lp_documents_free(lp_documents *documents) {
  for (size_t i = 0; i < documents->count; i++)
    lp_vec_free(&documents->data[i].ids);
  lp_vec_free(documents);
}
