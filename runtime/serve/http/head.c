/* See head.h. */
#include "runtime/serve/http/head.h"

#include <strings.h>

/* A body of more bytes is refused before it is sent. A shorter one is read, so that the answer is not lost when the
 * connection closes on what was not read. */
enum { SHORT_BODY = 1 << 16 };

typedef struct {
  const char *length, *coding, *expectation;
  int lengths, codings, hosts;
  bool differ; /* two lengths */
} seen;

static lp_head_verdict refuse(unsigned status, const char *why) {
  return (lp_head_verdict){true, status, why};
}

static bool is_token(const char *name) {
  if (!name[0]) return false;
  for (const char *at = name; *at; at++)
    if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F || strchr("\"(),/:;<=>?@[\\]{}", *at)) return false;
  return true;
}

static bool is_number(const char *text) {
  return text[0] && strspn(text, "0123456789") == strlen(text);
}

/* Tells whether a number of digits is greater than `most`, however long it is. */
static bool exceeds(const char *digits, int64_t most) {
  int64_t value = 0;
  for (; *digits; digits++) {
    if (value > (most - (*digits - '0')) / 10) return true;
    value = 10 * value + (*digits - '0');
  }
  return false;
}

static void note(seen *s, const lp_head_field *field) {
  const char *value = field->value ? field->value : "";
  if (strcasecmp(field->name, "Content-Length") == 0) {
    s->differ |= s->lengths++ > 0 && strcmp(s->length, value) != 0;
    s->length = value;
  } else if (strcasecmp(field->name, "Transfer-Encoding") == 0) {
    s->codings++;
    s->coding = value;
  } else if (strcasecmp(field->name, "Host") == 0) {
    s->hosts++;
  } else if (strcasecmp(field->name, "Expect") == 0) {
    s->expectation = value;
  }
}

lp_head_verdict lp_head_judge(const lp_head_field *fields, size_t count, const char *version, int64_t max_body) {
  seen s = {0};
  for (size_t i = 0; i < count; i++) {
    if (!is_token(fields[i].name)) return refuse(400, "the name of a header is not a token");
    if (fields[i].value && strchr(fields[i].value, '\r')) return refuse(400, "a header holds a CR");
    note(&s, &fields[i]);
  }
  if (s.differ) return refuse(400, "there are two values of Content-Length");
  if (s.length && !is_number(s.length)) return refuse(400, "Content-Length is not a number");
  if (s.length && s.codings > 0) return refuse(400, "there are both Content-Length and Transfer-Encoding");
  if (s.hosts > 1) return refuse(400, "there are two headers Host");
  if (s.hosts == 0 && lp_streq(version, "HTTP/1.1")) return refuse(400, "the header Host is missing");
  if (s.codings > 1 || (s.coding && strcasecmp(s.coding, "chunked") != 0))
    return refuse(501, "a body is sent as it is, or with the coding 'chunked'");
  if (s.expectation && strcasecmp(s.expectation, "100-continue") != 0)
    return refuse(417, "the only expectation that is met is 100-continue");
  if (s.length && exceeds(s.length, max_body)) return refuse(413, "the body is longer than 'max_body'");
  bool is_long = s.length && exceeds(s.length, SHORT_BODY);
  return (lp_head_verdict){.is_early = is_long || s.coding || s.expectation};
}
