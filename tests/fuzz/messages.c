/* Numbers and fields drawn from a fuzzer's bytes (messages.h). */
#include "tests/fuzz/messages.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

uint8_t fuzz_byte(fuzz_bytes *from) {
  if (from->size == 0) return 0;
  from->size--;
  return *from->data++;
}

uint64_t fuzz_number(fuzz_bytes *from) {
  static const uint64_t edges[] = {INT8_MAX,          UINT8_MAX,         UINT16_MAX,        INT32_MAX,
                                   UINT32_C(1) << 31, UINT32_MAX,        INT64_MAX,         UINT64_C(1) << 63,
                                   UINT64_MAX - 1,    UINT64_MAX,        UINT64_C(1) << 32, UINT64_C(1) << 24,
                                   1 << 16,           UINT64_C(1) << 60, UINT64_C(1) << 62, (1 << 24) + 1};
  enum { EDGES = sizeof edges / sizeof *edges, PLAIN = 0xe0 };
  uint8_t first = fuzz_byte(from);
  if (first < PLAIN) return first;
  if (first < PLAIN + EDGES) return edges[first - PLAIN];
  uint64_t number = 0;
  for (int i = 0; i < 8; i++)
    number = number << 8 | fuzz_byte(from);
  return number;
}

static void fill(fuzz_bytes *from, lp_arena *arena, ProtobufCMessage *message);

static void fill_one(fuzz_bytes *from, lp_arena *arena, const ProtobufCFieldDescriptor *field, void *at) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_BOOL: {
    uint32_t number = (uint32_t)fuzz_number(from);
    if (field->type == PROTOBUF_C_TYPE_BOOL) number &= 1;
    memcpy(at, &number, sizeof number);
    break;
  }
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE: { /* the bits of a double are mostly tiny or no number */
    uint64_t number = fuzz_number(from);
    double real = (double)number / 8;
    memcpy(at, field->type == PROTOBUF_C_TYPE_DOUBLE ? (void *)&real : (void *)&number, sizeof number);
    break;
  }
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES: {
    ProtobufCBinaryData bytes = {.len = fuzz_byte(from) % 48};
    bytes.data = lp_arena_alloc(arena, bytes.len + 1);
    for (size_t i = 0; i < bytes.len; i++)
      bytes.data[i] = fuzz_byte(from);
    bytes.data[bytes.len] = 0;
    if (field->type == PROTOBUF_C_TYPE_BYTES)
      memcpy(at, &bytes, sizeof bytes);
    else
      memcpy(at, &bytes.data, sizeof bytes.data);
    break;
  }
  case PROTOBUF_C_TYPE_MESSAGE: {
    const ProtobufCMessageDescriptor *kind = field->descriptor;
    ProtobufCMessage *part = lp_arena_alloc(arena, kind->sizeof_message);
    protobuf_c_message_init(kind, part);
    fill(from, arena, part);
    memcpy(at, &part, sizeof(part));
    break;
  }
  default:
    abort(); /* link.proto has a type that is not made here yet */
  }
}

static void fill_repeated(fuzz_bytes *from, lp_arena *arena, const ProtobufCFieldDescriptor *field, char *message) {
  enum { WIDEST = 8, MOST = 12 };
  size_t count = fuzz_byte(from) % MOST,
         width = field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_DOUBLE ? 8 : 4;
  char *items = lp_arena_alloc(arena, MOST * WIDEST);
  for (size_t i = 0; i < count; i++)
    fill_one(from, arena, field, items + i * width);
  memcpy(message + field->offset, &items, sizeof items);
  memcpy(message + field->quantifier_offset, &count, sizeof count);
}

static void fill(fuzz_bytes *from, lp_arena *arena, ProtobufCMessage *message) {
  LP_FOR_EACH(const ProtobufCFieldDescriptor, field, message->descriptor->fields, message->descriptor->n_fields) {
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
      fill_repeated(from, arena, field, (char *)message);
    else
      fill_one(from, arena, field, (char *)message + field->offset);
  }
}

void fuzz_message(fuzz_bytes *from, lp_arena *arena, Lp__Wire__Message *out) {
  lp__wire__message__init(out);
  const ProtobufCMessageDescriptor *kinds = out->base.descriptor;
  const ProtobufCFieldDescriptor *kind = &kinds->fields[fuzz_byte(from) % kinds->n_fields];
  fill_one(from, arena, kind, (char *)out + kind->offset);
  out->kind_case = (Lp__Wire__Message__KindCase)kind->id;
}
