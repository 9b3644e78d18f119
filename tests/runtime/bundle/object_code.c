/* Code for test_object.c: what emitted objects have, with data to relocate and calls to import. With LP_FOREIGN_IMPORT
 * it imports a function that no emitted code does. */
#include <stdlib.h>
#include <string.h>

int lp_number = 42;
int *lp_place = &lp_number;
const char *const lp_words[] = {"one", "two"};
int lp_zeros[1000];

int lp_sum(int a, int b);
int lp_sum(int a, int b) {
  return a + b + *lp_place;
}

void lp_copy(char *to, const char *from, size_t bytes);
void lp_copy(char *to, const char *from, size_t bytes) {
  memcpy(to, from, bytes);
}

#ifdef LP_FOREIGN_IMPORT
void lp_leave(void);
void lp_leave(void) {
  abort();
}
#endif
