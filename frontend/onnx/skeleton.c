/* Walks protobuf's wire format and writes the message again without the bytes of its tensors, so that a model of many
 * gigabytes unpacks as quickly as an empty one. Each `raw_data` becomes an lp_byte_range with its place in the file; so
 * does a float_data or double_data in one packed run, which has the same bytes.
 *
 * Wire format: https://protobuf.dev/programming-guides/encoding/ . Lengths of rewritten messages are padded to five
 * bytes, which every reader accepts. */
#include "frontend/onnx/skeleton.h"
#include "onnx.pb-c.h"

/* A message of two bytes becomes a structure of a hundred bytes, so the number of messages is limited before the file
 * is unpacked. */
enum { MAX_NESTING = 100, LENGTH_BYTES = 5, MAX_MESSAGES = 4 << 20, MAX_BYTES = 256 << 20 };

typedef enum {
  MSG_MODEL,
  MSG_GRAPH,
  MSG_NODE,
  MSG_ATTRIBUTE,
  MSG_TENSOR,
  MSG_FUNCTION,
  MSG_VALUE_INFO,
  MSG_TYPE,
  MSG_WRAPPED_TYPE,
  MSG_MAP_TYPE,
  MSG_ENTRY,
  MSG_OPSET,
  MSG_COUNT,
  MSG_COPY, /* a field that is kept as it is */
  MSG_TEXT, /* a name, which is kept. It must not hold NUL, because C would then see another name */
  MSG_DROP  /* a field that the importer never reads */
} message_kind;

typedef struct {
  uint32_t number;
  message_kind kind;
} field_rule;

/* Fields that are messages to walk, or to drop; all others are copied. */
static const field_rule rules[MSG_COUNT][12] = {
    [MSG_MODEL] = {{7, MSG_GRAPH},
                   {8, MSG_OPSET},
                   {25, MSG_FUNCTION},
                   {6, MSG_DROP},
                   {14, MSG_DROP},
                   {20, MSG_DROP},
                   {26, MSG_DROP}},
    [MSG_GRAPH] = {{1, MSG_NODE},
                   {5, MSG_TENSOR},
                   {11, MSG_VALUE_INFO},
                   {12, MSG_VALUE_INFO},
                   {2, MSG_TEXT},
                   {10, MSG_DROP},
                   {13, MSG_DROP},
                   {14, MSG_DROP},
                   {16, MSG_DROP}},
    [MSG_NODE] = {{5, MSG_ATTRIBUTE},
                  {1, MSG_TEXT},
                  {2, MSG_TEXT},
                  {3, MSG_TEXT},
                  {4, MSG_TEXT},
                  {7, MSG_TEXT},
                  {6, MSG_DROP},
                  {9, MSG_DROP},
                  {10, MSG_DROP}},
    [MSG_ATTRIBUTE] = {{1, MSG_TEXT},
                       {21, MSG_TEXT},
                       {5, MSG_TENSOR},
                       {6, MSG_GRAPH},
                       {10, MSG_TENSOR},
                       {11, MSG_GRAPH},
                       {14, MSG_TYPE},
                       {13, MSG_DROP},
                       {15, MSG_DROP},
                       {22, MSG_DROP},
                       {23, MSG_DROP}},
    [MSG_TENSOR] = {{8, MSG_TEXT}, {13, MSG_ENTRY}, {12, MSG_DROP}, {16, MSG_DROP}},
    [MSG_FUNCTION] = {{1, MSG_TEXT},
                      {4, MSG_TEXT},
                      {5, MSG_TEXT},
                      {6, MSG_TEXT},
                      {10, MSG_TEXT},
                      {7, MSG_NODE},
                      {11, MSG_ATTRIBUTE},
                      {8, MSG_DROP},
                      {12, MSG_DROP},
                      {14, MSG_DROP}},
    [MSG_VALUE_INFO] = {{1, MSG_TEXT}, {2, MSG_TYPE}, {3, MSG_DROP}, {4, MSG_DROP}},
    [MSG_TYPE] = {{4, MSG_WRAPPED_TYPE}, {5, MSG_MAP_TYPE}, {9, MSG_WRAPPED_TYPE}},
    [MSG_WRAPPED_TYPE] = {{1, MSG_TYPE}},
    [MSG_MAP_TYPE] = {{2, MSG_TYPE}},
    [MSG_ENTRY] = {{1, MSG_TEXT}, {2, MSG_TEXT}},
    [MSG_OPSET] = {{1, MSG_TEXT}},
};

typedef struct {
  const uint8_t *base; /* start of the file, from which spans count */
  lp_buf *out;
  lp_diag *diag;
  lp_loc loc;
  int depth;
  size_t fields;   /* number of fields read at the top level */
  bool is_model;   /* one of them is a version, an operator set or a graph, which only models have */
  size_t messages; /* number of all messages */
} walker;

typedef struct {
  uint32_t number, wire;
  uint64_t value;         /* of wire type 0 */
  const uint8_t *start;   /* of the key */
  const uint8_t *payload; /* of wire type 2: the bytes after the length */
  size_t length;
  const uint8_t *end;
} field;

static const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 64 && at < end; shift += 7) {
    uint8_t byte = *at++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return at;
  }
  return NULL;
}

static lp_status damaged(const walker *w, const uint8_t *at) {
  if (w->depth == 0 && !w->is_model)
    return lp_error(w->diag, w->loc, "not an ONNX file: its bytes are not a protobuf message");
  return lp_error(w->diag, w->loc, "damaged: no valid protobuf field at offset %zu", (size_t)(at - w->base));
}

static lp_status past_end(const walker *w, const uint8_t *at, uint64_t length, size_t left) {
  if (w->depth > 0 || !w->is_model) return damaged(w, at);
  return lp_error(w->diag, w->loc, "truncated: a field of %" PRIu64 " bytes at offset %zu, but only %zu are left",
                  length, (size_t)(at - w->base), left);
}

static lp_status read_field(const walker *w, const uint8_t *at, const uint8_t *end, field *out) {
  uint64_t key, value;
  *out = (field){.start = at};
  const uint8_t *next = read_varint(at, end, &key);
  if (!next || key >> 3 == 0 || key >> 3 > 0x1fffffff) return damaged(w, at);
  out->number = (uint32_t)(key >> 3);
  out->wire = (uint32_t)(key & 7);
  size_t left = (size_t)(end - next);
  switch (out->wire) {
  case 0:
    out->end = read_varint(next, end, &out->value);
    return out->end ? LP_OK : damaged(w, at);
  case 1:
    out->end = left >= 8 ? next + 8 : NULL;
    return out->end ? LP_OK : past_end(w, at, 8, left);
  case 5:
    out->end = left >= 4 ? next + 4 : NULL;
    return out->end ? LP_OK : past_end(w, at, 4, left);
  case 2:
    out->payload = read_varint(next, end, &value);
    if (!out->payload) return damaged(w, at);
    left = (size_t)(end - out->payload);
    if (value > left) return past_end(w, at, value, left);
    out->length = (size_t)value;
    out->end = out->payload + out->length;
    return LP_OK;
  default:
    return damaged(w, at);
  }
}

static message_kind rule_of(message_kind message, const field *f) {
  for (size_t i = 0; i < LP_COUNT(rules[message]) && rules[message][i].number; i++)
    if (rules[message][i].number == f->number) return rules[message][i].kind;
  return MSG_COPY;
}

static void put_varint(lp_buf *out, uint64_t value) {
  uint8_t bytes[10];
  size_t count = 0;
  do {
    bytes[count] = (uint8_t)(value & 0x7f);
    value >>= 7;
    if (value) bytes[count] |= 0x80;
    count++;
  } while (value);
  lp_buf_append(out, bytes, count);
}

static void put_span(walker *w, const uint8_t *payload, size_t length) {
  lp_byte_range span = {.offset = (uint64_t)(payload - w->base), .length = length};
  put_varint(w->out, 9u << 3 | 2);
  put_varint(w->out, sizeof span);
  lp_buf_append(w->out, &span, sizeof span);
}

/* The fields of a tensor that say where its data is. */
typedef struct {
  uint64_t data_type;
  size_t raw_runs, float_runs, double_runs;
} tensor_facts;

static lp_status read_tensor_facts(const walker *w, const uint8_t *at, const uint8_t *end, tensor_facts *facts) {
  *facts = (tensor_facts){0};
  while (at < end) {
    field f;
    LP_TRY(read_field(w, at, end, &f));
    /* A field that is not packed holds one element, so the data has several ranges: it counts as two. */
    size_t runs = f.wire == 2 ? 1 : 2;
    if (f.number == 2 && f.wire == 0) facts->data_type = f.value;
    if (f.number == 9) facts->raw_runs += runs;
    if (f.number == 4) facts->float_runs += runs;
    if (f.number == 10) facts->double_runs += runs;
    at = f.end;
  }
  return LP_OK;
}

static lp_status walk_nested(walker *w, message_kind kind, const field *f);

/* A field that is walked, kept or dropped. */
static lp_status put_field(walker *w, message_kind message, const field *f) {
  message_kind kind = rule_of(message, f);
  if (kind < MSG_COUNT || kind == MSG_TEXT) {
    if (f->wire != 2) return damaged(w, f->start);
    if (kind < MSG_COUNT) return walk_nested(w, kind, f);
    if (f->length > 0 && memchr(f->payload, 0, f->length))
      return lp_error(w->diag, w->loc, "a name at offset %zu has a NUL byte in it", (size_t)(f->start - w->base));
  }
  if (kind != MSG_DROP) lp_buf_append(w->out, f->start, (size_t)(f->end - f->start));
  if (w->out->size > MAX_BYTES)
    return lp_error(w->diag, w->loc, "the file has more than %d MiB outside of its tensors' data", MAX_BYTES >> 20);
  return LP_OK;
}

static lp_status walk_tensor(walker *w, const uint8_t *at, const uint8_t *end) {
  tensor_facts facts;
  LP_TRY(read_tensor_facts(w, at, end, &facts));
  bool floats = facts.raw_runs == 0 && facts.float_runs == 1 && facts.data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  bool doubles =
      facts.raw_runs == 0 && facts.double_runs == 1 && facts.data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
  while (at < end) {
    field f;
    LP_TRY(read_field(w, at, end, &f));
    if (f.wire == 2 && (f.number == 9 || (f.number == 4 && floats) || (f.number == 10 && doubles)))
      put_span(w, f.payload, f.length);
    else if (f.number == 9)
      return damaged(w, at);
    else
      LP_TRY(put_field(w, MSG_TENSOR, &f));
    at = f.end;
  }
  return LP_OK;
}

static lp_status walk(walker *w, message_kind message, const uint8_t *at, const uint8_t *end);

/* Copies a message within a message. Its length is known only after it is written. */
static lp_status walk_nested(walker *w, message_kind kind, const field *f) {
  if (w->depth >= MAX_NESTING) return lp_error(w->diag, w->loc, "its messages nest deeper than %d levels", MAX_NESTING);
  if (++w->messages > MAX_MESSAGES)
    return lp_error(w->diag, w->loc, "the file has more than %d messages", MAX_MESSAGES);
  put_varint(w->out, (uint64_t)f->number << 3 | 2);
  size_t start = w->out->size;
  lp_buf_append(w->out, "\0\0\0\0\0", LENGTH_BYTES);
  w->depth++;
  LP_TRY(kind == MSG_TENSOR ? walk_tensor(w, f->payload, f->end) : walk(w, kind, f->payload, f->end));
  w->depth--;
  uint64_t length = w->out->size - start - LENGTH_BYTES; /* at most MAX_BYTES */
  for (size_t i = 0; i < LENGTH_BYTES; i++)
    w->out->data[start + i] = (char)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
  return LP_OK;
}

/* Tells whether the field can begin a model. A model usually begins with its version; otherwise it must be a field that
 * models have. */
static bool begins_model(const field *f) {
  bool number = f->number == 1 || f->number == 5, other = f->number < 9 || f->number == 14;
  return number ? f->wire == 0 : (other || f->number == 20 || f->number == 25) && f->wire == 2;
}

static lp_status walk(walker *w, message_kind message, const uint8_t *at, const uint8_t *end) {
  while (at < end) {
    field f;
    LP_TRY(read_field(w, at, end, &f));
    if (w->depth == 0 && w->fields == 0 && !begins_model(&f)) return damaged(w, at);
    LP_TRY(put_field(w, message, &f));
    if (w->depth == 0) w->is_model |= f.number == 1 || f.number == 7 || f.number == 8;
    if (w->depth == 0) w->fields++;
    at = f.end;
  }
  return LP_OK;
}

lp_status lp_onnx_skeleton(const uint8_t *data, size_t size, lp_message kind, lp_buf *out, lp_diag *diag, lp_loc loc) {
  walker w = {.base = data, .out = out, .diag = diag, .loc = loc};
  if (size == 0) return lp_error(diag, loc, "not an ONNX file: the file is empty");
  if (kind == LP_MESSAGE_TENSOR) return walk_tensor(&w, data, data + size);
  return walk(&w, MSG_MODEL, data, data + size);
}
