/* Chat templates, which are rendered: neither CPU time nor memory exceeds a limit. After an even first byte the
 * template follows; after an odd one each byte chooses a part of one. */
#include <sanitizer/allocator_interface.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/chat/chat.h"

/* Under the sanitizers: CPU milliseconds of a rendering, and its bytes, with the block that breaks the limit. */
static const double most_ms = 8000;
enum { MOST_BYTES = 300 << 20 };

static const char *const parts[] = {"{% for a in range(9999) %}",
                                    "{% for b in ns.l %}",
                                    "{% for c in messages %}",
                                    "{% endfor %}",
                                    "{% endfor %}",
                                    "{% set ns.s = ",
                                    "{% set ns.l = ",
                                    "{% set ns.m = ",
                                    "{% if ",
                                    "{% endif %}",
                                    "{% macro f(x, y=ns.l) %}",
                                    "{% endmacro %}",
                                    "{{ ",
                                    " }}",
                                    " %}",
                                    "ns.s",
                                    "ns.l",
                                    "ns.m",
                                    "'ab'",
                                    "'\\n'",
                                    "7",
                                    "99999",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    "(",
                                    ")",
                                    ", ",
                                    ": ",
                                    " + ",
                                    " ~ ",
                                    " * ",
                                    " % ",
                                    " == ",
                                    " < ",
                                    " in ",
                                    " not in ",
                                    " and ",
                                    "[1:]",
                                    "[::-1]",
                                    "[0]",
                                    " | tojson",
                                    " | tojson(indent=9)",
                                    " | length",
                                    " | replace('a', 'aaaa')",
                                    " | join(ns.s)",
                                    " | sort",
                                    " | unique",
                                    " | list",
                                    " | map('string')",
                                    " | map('upper')",
                                    " | select('in', ns.l)",
                                    " | batch(2)",
                                    " | slice(99)",
                                    " | reverse",
                                    " | indent(999)",
                                    " | sum(start='')",
                                    " | groupby('0')",
                                    " | dictsort",
                                    " | items",
                                    " | escape",
                                    " | urlencode",
                                    " | center(999)",
                                    " | string",
                                    " | int",
                                    ".split('a')",
                                    ".rsplit(ns.s)",
                                    ".strip(ns.s)",
                                    ".count('a')",
                                    ".format(ns.s, ns.s)",
                                    ".join(ns.l)",
                                    ".upper()",
                                    ".startswith(ns.l)",
                                    "f(",
                                    "a",
                                    "c",
                                    "c.content",
                                    "loop.index",
                                    "loop.previtem",
                                    "namespace(s=ns.s)",
                                    "dict(a=ns.l)",
                                    " is upper",
                                    " is eq ",
                                    " if 1 else ",
                                    "{% set t %}",
                                    "{% endset %}",
                                    "t",
                                    "{% filter upper %}",
                                    "{% endfilter %}",
                                    "{% call f(1) %}",
                                    "{% endcall %}",
                                    "caller()"};

static size_t live, peak;

static void note_new(const volatile void *data, size_t size) {
  (void)size;
  live += __sanitizer_get_allocated_size(data);
  if (live > peak) peak = live;
}

static void note_end(const volatile void *data) {
  const size_t size = data ? __sanitizer_get_allocated_size(data) : 0;
  live -= size < live ? size : live;
}

static double cpu_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void render(const lp_buf *source, const lp_json_value *variables) {
  static const lp_chat_message messages[] = {{"system", "s"}, {"user", " u "}, {"assistant", "\xC3\xA9"}};
  lp_chat_input input = {.file = "f", .messages = messages, .count = 3, .variables = variables};
  lp_diag *diag = lp_diag_create();
  lp_buf out = {0};
  live = peak = 0;
  const double begin = cpu_ms();
  const lp_status status = lp_chat_render(lp_buf_text(source), source->size, &input, &out, diag);
  if (cpu_ms() - begin > most_ms || peak > MOST_BYTES) abort();
  if (lp_diag_error_count(diag) != (status == LP_OK ? 0 : 1)) abort();
  lp_buf_free(&out);
  lp_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char variables[] = "{\"tools\":[{\"a\":[1,2.5,null]}],\"messages\":[{\"role\":\"user\",\"content\":"
                                  "[{\"type\":\"text\"}]},{\"role\":\"tool\",\"content\":{\"x\":true}}]}";
  static lp_json_document *document;
  lp_buf source = {0};
  if (!document) {
    __sanitizer_install_malloc_and_free_hooks(note_new, note_end);
    if (lp_json_parse("v", variables, sizeof variables - 1, 0, &document, NULL) != LP_OK) abort();
  }
  if (size == 0) return 0;
  if (data[0] % 2)
    lp_buf_puts(&source, "{% set ns = namespace(s='ab', l=[1, 'a'], m={'a': 1}) %}");
  else
    lp_buf_append(&source, data + 1, size - 1);
  for (size_t i = 1; data[0] % 2 && i < size; i++)
    lp_buf_puts(&source, parts[data[i] % LP_COUNT(parts)]);
  const lp_json root = lp_json_root("v", document);
  render(&source, NULL);
  render(&source, root.value);
  lp_buf_free(&source);
  return 0;
}
