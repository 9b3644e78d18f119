/* tokenize TOKENIZER.json encode|decode [special], tokenize TEMPLATE.jinja chat: the driver of compare.py, kinds.py and
 * chat/conversations.py.
 *
 * encode reads texts, each a 32-bit length (little-endian) and its bytes, and writes one line of ids for each, with the
 * post-processor's tokens when `special`. decode reads lines of ids and writes texts in the form above, without special
 * tokens when `special`. chat reads JSON objects of variables in the same form and writes what the template makes of
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/chat/chat.h"
#include "runtime/runtime.h"

static const lp_chat_special specials[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

static bool read_text(lp_buf *text) {
  uint8_t head[4];
  if (fread(head, 1, 4, stdin) != 4) return false;
  uint32_t size = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
  lp_buf_clear(text);
  for (char chunk[4096]; size > 0;) {
    size_t got = fread(chunk, 1, size < sizeof chunk ? size : sizeof chunk, stdin);
    if (got == 0) return false;
    lp_buf_append(text, chunk, got);
    size -= (uint32_t)got;
  }
  return true;
}

static lp_status encode_all(const lp_tokenizer *tokenizer, bool special, lp_diag *diag) {
  lp_buf text = {0};
  lp_tokens ids = {0};
  lp_status status = LP_OK;
  while (status == LP_OK && read_text(&text)) {
    ids.count = 0;
    status = lp_tokenizer_encode(tokenizer, lp_buf_text(&text), text.size, special, &ids, diag);
    for (size_t i = 0; i < ids.count; i++)
      printf(i == 0 ? "%d" : " %d", ids.data[i]);
    printf("\n");
  }
  lp_vec_free(&ids);
  lp_buf_free(&text);
  return status;
}

static void write_text(const lp_buf *text) {
  for (int shift = 0; shift < 32; shift += 8)
    putchar((int)(text->size >> shift & 0xFF));
  fwrite(lp_buf_text(text), 1, text->size, stdout);
}

static lp_status decode_all(const lp_tokenizer *tokenizer, bool special) {
  char *line = NULL;
  size_t capacity = 0;
  lp_tokens ids = {0};
  lp_buf text = {0};
  while (getline(&line, &capacity, stdin) > 0) {
    ids.count = 0;
    lp_buf_clear(&text);
    char *save = NULL;
    for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
      lp_vec_push(&ids, (int32_t)strtol(word, NULL, 10));
    lp_tokenizer_decode(tokenizer, ids.data, ids.count, special, &text);
    write_text(&text);
  }
  lp_vec_free(&ids);
  lp_buf_free(&text);
  free(line);
  return LP_OK;
}

/* Renders each object of variables; the text follows an 'o', the reason of a failure an 'e'. */
static lp_status chat_all(const char *path, lp_diag *diag) {
  char *source = NULL;
  size_t size = 0;
  lp_buf text = {0}, out = {0};
  LP_TRY(lp_file_read(path, &source, &size, diag));
  while (read_text(&text)) {
    lp_diag *own = lp_diag_create();
    lp_json_document *document = NULL;
    lp_buf_clear(&out);
    lp_buf_puts(&out, "o");
    lp_status status = lp_json_parse("variables", lp_buf_text(&text), text.size, 0, &document, own);
    lp_json root = lp_json_root("variables", document);
    lp_chat_input input = {
        .file = path, .specials = specials, .special_count = LP_COUNT(specials), .variables = root.value};
    if (status == LP_OK) status = lp_chat_render(source, size, &input, &out, own);
    if (status != LP_OK) {
      lp_buf_clear(&out);
      lp_buf_printf(&out, "e%s", lp_diag_get(own, 0)->text);
    }
    write_text(&out);
    lp_json_free(document);
    lp_diag_free(own);
  }
  lp_buf_free(&text);
  lp_buf_free(&out);
  free(source);
  return LP_OK;
}

static void print_entry(void *user, const lp_diag_entry *entry) {
  (void)user;
  lp_buf text = {0};
  lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  lp_buf_free(&text);
}

int main(int argc, char **argv) {
  bool special = argc == 4 && strcmp(argv[3], "special") == 0;
  if (argc < 3 || argc > 4 || (argc == 4 && !special)) {
    fprintf(stderr, "usage: tokenize TOKENIZER.json encode|decode [special], or TEMPLATE.jinja chat\n");
    return LP_USAGE;
  }
  lp_diag *diag = lp_diag_create();
  lp_tokenizer *tokenizer = NULL;
  lp_diag_set_sink(diag, print_entry, NULL);
  bool chat = strcmp(argv[2], "chat") == 0;
  lp_status status = chat ? chat_all(argv[1], diag) : lp_tokenizer_load(argv[1], &tokenizer, diag);
  if (status == LP_OK && !chat)
    status = strcmp(argv[2], "encode") == 0 ? encode_all(tokenizer, special, diag) : decode_all(tokenizer, special);
  lp_tokenizer_free(tokenizer);
  lp_diag_free(diag);
  return (int)status;
}
