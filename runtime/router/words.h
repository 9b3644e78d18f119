/* The words of a request's keywords: "code, long answer" has two. */
#ifndef LP_ROUTER_WORDS_H
#define LP_ROUTER_WORDS_H

#include <stddef.h>
#include <string.h>

typedef struct {
  const char *text;
  size_t size;
} lp_word;

/* The next word at *at, without the blanks around it; size 0 at the end. */
static inline lp_word lp_next_word(const char **at) {
  const char *p = *at;
  while (*p == ' ' || *p == ',')
    ++p;
  size_t size = strcspn(p, ",");
  *at = p + size;
  while (size > 0 && p[size - 1] == ' ')
    --size;
  return (lp_word){p, size};
}

static inline int lp_word_equal(lp_word a, lp_word b) {
  return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

#endif
