/* The tokenizer's public functions: loading, encoding and decoding. */

#include "base/file.h"
#include "base/path.h"
#include "base/utf8.h"
#include "runtime/chat/chat.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/internal.h"
#include "runtime/tokenizer/load.h"
#include "runtime/tokenizer/steps.h"
#include "runtime/tokenizer/vocab.h"
#include "runtime/tokenizer/words.h"

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static lp_status load_parts(lp_loader *loader, const lp_json *root) {
  LP_TRY(lp_json_object(root, loader->diag));
  LP_TRY(lp_load_model(loader, LP_MEMBER(root, "model")));
  LP_TRY(lp_load_normalizer(loader, LP_MEMBER(root, "normalizer")));
  LP_TRY(lp_load_added(loader, LP_MEMBER(root, "added_tokens")));
  lp_vocab_complete(&loader->tokenizer->vocab);
  LP_TRY(lp_load_pre_tokenizer(loader, LP_MEMBER(root, "pre_tokenizer")));
  LP_TRY(lp_load_post_processor(loader, LP_MEMBER(root, "post_processor")));
  return lp_load_decoder(loader, LP_MEMBER(root, "decoder"));
}

static lp_status load_document(lp_loader *loader, const char *data, size_t size) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(loader->file, data, size, LP_JSON_ALLOW_DUPLICATES, &document, loader->diag));
  lp_json root = lp_json_root(loader->file, document);
  return load_parts(loader, &root);
}

lp_status lp_tokenizer_parse(const char *file, const char *data, size_t size, lp_tokenizer **out, lp_diag *diag) {
  lp_tokenizer *tokenizer = lp_alloc(sizeof *tokenizer);
  tokenizer->arena = lp_arena_create();
  lp_loader loader = {.tokenizer = tokenizer, .file = file, .diag = diag};
  lp_status status = load_document(&loader, data, size);
  if (status == LP_OK)
    *out = tokenizer;
  else
    lp_tokenizer_free(tokenizer);
  return status;
}

/* Finds the first of the usual names in the vocabulary, for a tokenizer without a tokenizer_config.json. */
static const char *usual_name(const lp_tokenizer *tokenizer, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int32_t id = lp_tokenizer_token_id(tokenizer, names[i]);
    if (id >= 0 && tokenizer->special.data[id]) return names[i];
  }
  return NULL;
}

static void guess_specials(lp_tokenizer *tokenizer) {
  static const char *const bos[] = {"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>"};
  static const char *const eos[] = {"</s>", "<|im_end|>", "<|end_of_text|>", "<eos>", "<|endoftext|>"};
  tokenizer->bos = usual_name(tokenizer, bos, LP_COUNT(bos));
  tokenizer->eos = usual_name(tokenizer, eos, LP_COUNT(eos));
  const lp_chat_special found[] = {{"bos_token", tokenizer->bos}, {"eos_token", tokenizer->eos}};
  for (size_t i = 0; i < LP_COUNT(found); i++)
    if (found[i].text) lp_vec_push(&tokenizer->specials, found[i]);
}

lp_status lp_tokenizer_load(const char *path, lp_tokenizer **out, lp_diag *diag) {
  char *data = NULL;
  size_t size = 0;
  lp_tokenizer *tokenizer = NULL;
  LP_TRY(lp_file_read(path, &data, &size, diag));
  lp_status status = lp_tokenizer_parse(path, data, size, &tokenizer, diag);
  free(data);
  if (status != LP_OK) return status;
  lp_loader loader = {.tokenizer = tokenizer, .file = path, .diag = diag};
  char *dir = lp_path_dir(path), *config = lp_path_join(dir, "tokenizer_config.json");
  if (!lp_path_exists(config)) guess_specials(tokenizer);
  status = lp_load_config(&loader, dir);
  free(config);
  free(dir);
  if (status == LP_OK)
    *out = tokenizer;
  else
    lp_tokenizer_free(tokenizer);
  return status;
}

void lp_tokenizer_free(lp_tokenizer *tokenizer) {
  if (!tokenizer) return;
  lp_vocab_free(&tokenizer->vocab);
  lp_added_free(&tokenizer->raw);
  lp_added_free(&tokenizer->normalized);
  lp_vec_free(&tokenizer->special);
  lp_vec_free(&tokenizer->decoded);
  lp_steps_free(&tokenizer->normalizer);
  lp_steps_free(&tokenizer->pre_tokenizer);
  lp_steps_free(&tokenizer->decoder);
  lp_vec_free(&tokenizer->before);
  lp_vec_free(&tokenizer->after);
  lp_vec_free(&tokenizer->specials);
  lp_arena_free(tokenizer->arena);
  free(tokenizer);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

int32_t lp_tokenizer_model_size(const lp_tokenizer *tokenizer) {
  size_t size = tokenizer->vocab.tokens.count;
  while (size > 0 && !tokenizer->vocab.tokens.data[size - 1].in_model)
    size--;
  return (int32_t)size;
}

int32_t lp_tokenizer_token_id(const lp_tokenizer *tokenizer, const char *token) {
  int32_t id = lp_vocab_find(&tokenizer->vocab, token, strlen(token));
  const lp_token *tokens = tokenizer->vocab.tokens.data;
  for (size_t i = 0; id < 0 && i < tokenizer->vocab.tokens.count; i++)
    if (tokens[i].known && !tokens[i].in_model && lp_streq(tokenizer->vocab.text.data + tokens[i].offset, token))
      id = (int32_t)i;
  return id;
}

int32_t lp_tokenizer_eos(const lp_tokenizer *tokenizer) {
  return tokenizer->eos ? lp_tokenizer_token_id(tokenizer, tokenizer->eos) : -1;
}

bool lp_tokenizer_has_chat_template(const lp_tokenizer *tokenizer) {
  return tokenizer->chat.source != NULL;
}

bool lp_tokenizer_chat_reads_tools(const lp_tokenizer *tokenizer) {
  const lp_chat_template *chat = &tokenizer->chat;
  return tokenizer->tool_chat.source || (chat->source && memmem(chat->source, chat->size, "tools", 5));
}

lp_status lp_tokenizer_render(const lp_tokenizer *tokenizer, lp_chat_input input, bool with_tools, lp_buf *out,
                              lp_diag *diag) {
  const lp_chat_template *chat = with_tools && tokenizer->tool_chat.source ? &tokenizer->tool_chat : &tokenizer->chat;
  if (!chat->source) return lp_error(diag, LP_LOC_NONE, "the tokenizer has no chat template");
  input.file = chat->file;
  input.specials = tokenizer->specials.data;
  input.special_count = tokenizer->specials.count;
  return lp_chat_render(chat->source, chat->size, &input, out, diag);
}

lp_status lp_tokenizer_chat(const lp_tokenizer *tokenizer, const lp_chat_message *messages, size_t count,
                            bool add_generation_prompt, lp_buf *out, lp_diag *diag) {
  const lp_chat_input input = {.messages = messages, .count = count, .add_generation_prompt = add_generation_prompt};
  return lp_tokenizer_render(tokenizer, input, false, out, diag);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static void append_ids(const lp_tokens *ids, lp_tokens *out) {
  for (size_t i = 0; i < ids->count; i++)
    lp_vec_push(out, ids->data[i]);
}

/* A user's text may spell special tokens. To keep them from becoming tokens, a mark is inserted into each: a
 * noncharacter that the user's texts do not contain. It is removed before the text is cut into words. */
enum { FIRST_MARK = 0xFDD0, LAST_MARK = 0xFDEF };

static lp_status drop_mark(const lp_tokenizer_step *step, const char *text, size_t size, bool first, lp_work *work) {
  (void)first;
  for (size_t at = 0; at < size;) {
    const char *mark = memmem(text + at, size - at, step->text, step->size);
    size_t end = mark ? (size_t)(mark - text) : size;
    lp_buf_append(&work->next.text, text + at, end - at);
    at = mark ? end + step->size : size;
  }
  return LP_OK;
}

/* `mark` NULL: the text has no marks. */
static lp_status cut_pieces(const lp_tokenizer *tokenizer, const char *mark, lp_work *work) {
  lp_added_split(&tokenizer->raw, work);
  LP_TRY(lp_steps_run(&tokenizer->normalizer, work));
  lp_added_split(&tokenizer->normalized, work);
  const lp_tokenizer_step step = {.text = mark, .size = mark ? strlen(mark) : 0};
  if (mark) LP_TRY(lp_work_rewrite(&step, work, drop_mark));
  return lp_steps_run(&tokenizer->pre_tokenizer, work);
}

/* Appends the text with the mark after the first character of every special token. */
void lp_tokenizer_mark(const lp_tokenizer *tokenizer, const char *text, size_t size, const char *mark, lp_buf *out) {
  for (size_t at = 0, bad; at < size;) {
    bool special = lp_added_begins(&tokenizer->raw, text + at, size - at) ||
                   lp_added_begins(&tokenizer->normalized, text + at, size - at);
    size_t length = lp_utf8_length(text + at, size - at, &bad);
    if (length == 0) length = 1;
    lp_buf_append(out, text + at, length);
    if (special) lp_buf_puts(out, mark);
    at += length;
  }
}

/* The first noncharacter that none of the texts contains. */
void lp_tokenizer_choose_mark(const lp_chat_message *messages, size_t count, lp_buf *out) {
  for (uint32_t code = FIRST_MARK; code <= LAST_MARK; code++) {
    bool taken = false;
    lp_buf_clear(out);
    lp_utf8_write(code, out);
    for (size_t i = 0; i < count && !taken; i++)
      taken = messages[i].content && strstr(messages[i].content, lp_buf_text(out));
    if (!taken) return;
  }
}

static lp_status encode_piece(const lp_vocab *vocab, const char *text, size_t size, lp_bpe_scratch *scratch,
                              lp_tokens *out, lp_diag *diag) {
  switch (vocab->kind) {
  case LP_MODEL_UNIGRAM:
    return lp_unigram_encode(vocab, text, size, out, diag);
  case LP_MODEL_WORDPIECE:
    return lp_wordpiece_encode(vocab, text, size, out, diag);
  case LP_MODEL_WORDLEVEL:
    return lp_word_level_encode(vocab, text, size, out, diag);
  case LP_MODEL_BPE:
    break;
  }
  lp_bpe_encode(vocab, text, size, scratch, out);
  return LP_OK;
}

static lp_status encode_pieces(const lp_tokenizer *tokenizer, const lp_work *work, lp_tokens *out) {
  lp_bpe_scratch *scratch = lp_bpe_scratch_create();
  lp_status status = LP_OK;
  for (size_t i = 0; i < work->now.list.count && status == LP_OK; i++) {
    lp_piece piece = work->now.list.data[i];
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    if (piece.token >= 0)
      lp_vec_push(out, piece.token);
    else
      status = encode_piece(&tokenizer->vocab, text, piece.size, scratch, out, work->diag);
  }
  lp_bpe_scratch_free(scratch);
  return status;
}

enum { MAX_TEXT = 1 << 28 }; /* in bytes; steps may lengthen a text, and positions in a word have 32 bits */

static lp_status encode(const lp_tokenizer *tokenizer, const char *text, size_t size, const char *mark,
                        bool add_special, lp_tokens *out, lp_diag *diag) {
  if (size > MAX_TEXT)
    return lp_error(diag, LP_LOC_NONE, "the text to encode has %zu bytes, more than %d", size, MAX_TEXT);
  lp_work work = {.diag = diag};
  uint32_t code;
  lp_work_begin(&work);
  lp_utf8_repair(text, size, &work.next.text);
  lp_work_add(&work, 0, -1, work.next.text.size > 0 ? lp_utf8_next(lp_buf_text(&work.next.text), &code) : 0);
  lp_work_swap(&work);
  lp_status status = cut_pieces(tokenizer, mark, &work);
  if (status == LP_OK) {
    if (add_special) append_ids(&tokenizer->before, out);
    status = encode_pieces(tokenizer, &work, out);
    if (add_special) append_ids(&tokenizer->after, out);
  }
  lp_work_free(&work);
  return status;
}

lp_status lp_tokenizer_encode_marked(const lp_tokenizer *tokenizer, const lp_buf *text, const char *mark,
                                     lp_tokens *out, lp_diag *diag) {
  return encode(tokenizer, lp_buf_text(text), text->size, mark, false, out, diag);
}

lp_status lp_tokenizer_encode(const lp_tokenizer *tokenizer, const char *text, size_t size, bool add_special,
                              lp_tokens *out, lp_diag *diag) {
  return encode(tokenizer, text, size, NULL, add_special, out, diag);
}

lp_status lp_tokenizer_encode_typed(const lp_tokenizer *tokenizer, const char *text, size_t size, bool add_special,
                                    lp_tokens *out, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf copy = {0}, mark = {0}, marked = {0};
  lp_buf_append(&copy, text, size); /* a copy that ends in a NUL, which the text need not */
  const lp_chat_message message = {.role = "", .content = lp_buf_text(&copy)};
  lp_tokenizer_choose_mark(&message, 1, &mark);
  lp_tokenizer_mark(tokenizer, text, size, mark.data, &marked);
  return encode(tokenizer, lp_buf_text(&marked), marked.size, mark.data, add_special, out, diag);
}

lp_status lp_tokenizer_encode_chat(const lp_tokenizer *tokenizer, const lp_chat_message *messages, size_t count,
                                   const lp_watch *watch, lp_tokens *ids, lp_diag *diag) {
  LP_OWNED(lp_free_at) lp_chat_message *marked = lp_alloc((count + 1) * sizeof *marked);
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  LP_OWNED(lp_buf_free) lp_buf mark = {0}, text = {0};
  lp_tokenizer_choose_mark(messages, count, &mark);
  for (size_t i = 0; i < count; i++) {
    lp_buf content = {0};
    marked[i] = messages[i];
    if (!messages[i].content) continue;
    lp_tokenizer_mark(tokenizer, messages[i].content, strlen(messages[i].content), mark.data, &content);
    marked[i].content = lp_arena_strndup(arena, lp_buf_text(&content), content.size);
    lp_buf_free(&content);
  }
  const lp_chat_input input = {.messages = marked, .count = count, .add_generation_prompt = true, .watch = watch};
  LP_TRY(lp_tokenizer_render(tokenizer, input, false, &text, diag));
  return lp_tokenizer_encode_marked(tokenizer, &text, mark.data, ids, diag);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static lp_decoded decode_id(const lp_tokenizer *tokenizer, int32_t id) {
  lp_decoded found = {0};
  found.text = lp_vocab_text(&tokenizer->vocab, id, &found.size);
  if (!found.text) return found;
  found.special = tokenizer->special.data[id];
  bool changed = (size_t)id < tokenizer->decoded.count && tokenizer->decoded.data[id].text;
  return changed ? tokenizer->decoded.data[id] : found;
}

void lp_tokenizer_decode(const lp_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                         lp_buf *out) {
  lp_work work = {.keep_empty = true};
  lp_work_begin(&work);
  for (size_t i = 0; i < count; i++) {
    size_t start = work.next.text.size;
    const lp_decoded token = decode_id(tokenizer, ids[i]);
    if (!token.text || (skip_special && token.special)) continue;
    lp_buf_append(&work.next.text, token.text, token.size);
    lp_work_add(&work, start, -1, 0);
  }
  lp_work_swap(&work);
  /* If a pattern exceeds its limits, decoding ends with the pieces before its step. */
  lp_status status = lp_steps_run(&tokenizer->decoder, &work);
  (void)status;
  for (size_t i = 0; i < work.now.list.count; i++) {
    if (i > 0 && !tokenizer->has_decoder) lp_buf_append(out, " ", 1);
    lp_buf_append(out, lp_buf_text(&work.now.text) + work.now.list.data[i].start, work.now.list.data[i].size);
  }
  lp_work_free(&work);
}

/* ---- the bytes of a token ---------------------------------------------------------------------------------------- */

/* They need not be whole characters. */

/* Runs a step that works on each piece by itself. The piece follows another one: what decoders do to the first piece of
 * a text does not apply. */
static void run_after_another(const lp_tokenizer_step *step, lp_buf *bytes) {
  LP_OWNED(lp_work_free) lp_work work = {.keep_empty = true};
  lp_work_begin(&work);
  lp_buf_puts(&work.next.text, "a");
  lp_work_add(&work, 0, -1, 0);
  lp_buf_append(&work.next.text, lp_buf_text(bytes), bytes->size);
  lp_work_add(&work, 1, -1, 0);
  lp_work_swap(&work);
  if (step->run(step, &work) == LP_OK && work.now.list.count == 2) {
    const lp_piece last = work.now.list.data[1];
    lp_buf_clear(bytes);
    lp_buf_append(bytes, lp_buf_text(&work.now.text) + last.start, last.size);
  }
}

void lp_tokenizer_token_bytes(const lp_tokenizer *tokenizer, int32_t id, lp_buf *out, bool *special) {
  size_t size = 0;
  const char *text = lp_vocab_text(&tokenizer->vocab, id, &size);
  LP_OWNED(lp_buf_free) lp_buf bytes = {0};
  *special = text && tokenizer->special.data[id];
  if (!text) return;
  lp_buf_append(&bytes, text, size);
  for (size_t i = 0; !*special && i < tokenizer->decoder.count; i++) {
    const lp_tokenizer_step *step = &tokenizer->decoder.data[i];
    if (step->run == lp_step_fuse || step->run == lp_step_cut || step->run == lp_step_ctc)
      continue; /* of whole texts */
    if (step->run == lp_step_unbytes)
      lp_step_take_bytes(&bytes);
    else if (step->run == lp_step_byte_fallback)
      lp_step_take_fallback(&bytes);
    else
      run_after_another(step, &bytes);
  }
  if (!*special && !tokenizer->has_decoder) lp_buf_puts(out, " ");
  lp_buf_append(out, lp_buf_text(&bytes), bytes.size);
}

/* ---- text of a stream of tokens ---------------------------------------------------------------------------------- */

/* A character may take several tokens, and the text of a token may depend on the one before, so the text of a short
 * window is decoded with and without the new token. */

/* Tells whether the text ends within a character: decoders give U+FFFD for bytes that are not yet a character. */
static bool is_cut(const char *text, size_t size) {
  static const char replacement[] = "\xef\xbf\xbd";
  if (size >= 3 && memcmp(text + size - 3, replacement, 3) == 0) return true;
  size_t follow = 0;
  while (follow < size && follow < 4 && ((uint8_t)text[size - 1 - follow] & 0xc0) == 0x80)
    follow++;
  if (follow >= size) return false;
  uint8_t lead = (uint8_t)text[size - 1 - follow];
  size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  return follow < wanted;
}

void lp_text_stream_put(lp_text_stream *stream, const lp_tokenizer *tokenizer, int32_t token, lp_buf *out) {
  lp_vec_push(&stream->ids, token);
  LP_OWNED(lp_buf_free) lp_buf before = {0}, now = {0};
  const int32_t *window = stream->ids.data + stream->begin;
  lp_tokenizer_decode(tokenizer, window, stream->shown - stream->begin, true, &before);
  lp_tokenizer_decode(tokenizer, window, stream->ids.count - stream->begin, true, &now);
  if (now.size > before.size && !is_cut(now.data, now.size)) {
    lp_buf_append(out, now.data + before.size, now.size - before.size);
    stream->begin = stream->shown;
    stream->shown = stream->ids.count;
  }
}

void lp_text_stream_free(lp_text_stream *stream) {
  lp_vec_free(&stream->ids);
  *stream = (lp_text_stream){0};
}
