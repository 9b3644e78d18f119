/* Reads --cloud and --peer: see addresses.h. */
#include "tools/run/addresses.h"

#include "runtime/link/address.h"

#include <stdlib.h>
#include <string.h>

static bool is_address(const char *text) {
  char *host = NULL;
  int port = 0;
  bool good = lp_address_split(text, &host, &port, NULL) == LP_OK;
  free(host);
  return good;
}

/* The length of the name before the address; 0: there is none. An address has a colon before any "=". */
static size_t name_of(const char *text) {
  size_t length = strcspn(text, "=:");
  return text[length] == '=' ? length : 0;
}

static lp_status read_one(const char *text, const char *option, bool named, lp_run_addresses *out, lp_diag *diag) {
  size_t length = name_of(text);
  const char *address = length > 0 ? text + length + 1 : text;
  lp_loc loc = LP_LOC_FILE(option);
  if (named && length == 0)
    return lp_error_as(LP_USAGE, diag, loc, "'%s' is not the name and address of a place, such as edge=10.0.0.7:7700",
                       text);
  if (!is_address(address))
    return lp_error_as(LP_USAGE, diag, loc, "'%s' is no address: wanted HOST:PORT or unix:PATH", address);
  if (length == 0) {
    out->only = text;
    return LP_OK;
  }
  if (out->count == LP_PLACES_MAX) return lp_error_as(LP_USAGE, diag, loc, "more than %d addresses", LP_PLACES_MAX);
  char *name = lp_alloc(length + 1);
  memcpy(name, text, length);
  out->place[out->count++] = (lp_place_address){name, address};
  return LP_OK;
}

lp_status lp_run_addresses_read(const lp_texts *values, const char *option, bool named, lp_run_addresses *out,
                                lp_diag *diag) {
  *out = (lp_run_addresses){0};
  for (size_t i = 0; i < values->count; i++) {
    if (out->only)
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option),
                         "two addresses: wanted the name of a place before each, such as edge=%s", values->data[i]);
    LP_TRY(read_one(values->data[i], option, named, out, diag));
  }
  if (!out->only || out->count == 0) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "'%s' has no name of a place before it", out->only);
}

void lp_run_addresses_free(lp_run_addresses *addresses) {
  for (size_t i = 0; i < addresses->count; i++)
    free((void *)(uintptr_t)addresses->place[i].place);
  *addresses = (lp_run_addresses){0};
}
