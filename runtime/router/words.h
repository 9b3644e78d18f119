/* The words of a request's keywords, separated by commas: "code, long answer" has two. */
#pragma once

#include <stddef.h>
#include <string.h>

typedef struct {
  const char *text;
  size_t size;
} lp_word;

/* Reads the next word at *at, without the blanks around it; size 0: the end. */
static inline lp_word lp_next_word(const char **at) {
  const char *p = *at;
  while (*p == ' ' || *p == ',')
    p++;
  size_t size = strcspn(p, ",");
  *at = p + size;
  while (size > 0 && p[size - 1] == ' ')
    size--;
  return (lp_word){p, size};
}

static inline int lp_word_equal(lp_word a, lp_word b) {
  return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

/* The number of words that two texts have in common; equal texts count more than any others. */
static inline int lp_words_shared(const char *a, const char *b) {
  if (strcmp(a, b) == 0) return 1 + (int)strlen(a);
  int shared = 0;
  for (lp_word word = lp_next_word(&a); word.size > 0; word = lp_next_word(&a)) {
    const char *at = b;
    for (lp_word other = lp_next_word(&at); other.size > 0; other = lp_next_word(&at))
      shared += lp_word_equal(word, other);
  }
  return shared;
}
