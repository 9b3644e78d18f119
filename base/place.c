/* The names of places. */
#include "base/place.h"

#include "base/base.h"

bool lp_place_is_name(const char *name) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  const size_t length = strlen(name);
  return length > 0 && length <= LP_PLACE_NAME_MOST && strspn(name, allowed) == length && name[0] != '.' &&
         !lp_streq(name, "both");
}

lp_place lp_place_find(const char *const *names, int32_t count, const char *name) {
  for (lp_place place = 0; name && place < count; place++)
    if (lp_streq(names[place], name)) return place;
  return -1;
}
