/* Frames cut out of a stream, and laid out for it (frame.h). */
#include "runtime/link/frame.h"

#include <stdlib.h>
#include <string.h>

/* Copies from `ahead` what the target still lacks. */
static void fill(lp_frame_reader *reader, uint8_t *target, size_t wanted) {
  size_t here = reader->end - reader->begin, lacks = wanted - reader->have, count = here < lacks ? here : lacks;
  if (count > 0) memcpy(target + reader->have, reader->ahead + reader->begin, count);
  reader->have += count;
  reader->begin += count;
}

static uint64_t length_of(const lp_frame_reader *reader) {
  uint64_t length = 0;
  for (int i = 0; i < LP_FRAME_LENGTH; i++)
    length |= (uint64_t)reader->length[i] << (8 * i);
  return length;
}

static bool begin_frame(lp_frame_reader *reader, uint64_t length) {
  reader->frame = malloc((size_t)length);
  reader->size = (size_t)length;
  reader->have = 0;
  return reader->frame != NULL;
}

static lp_frame_progress use_ahead(lp_frame_reader *reader) {
  while (!reader->frame) {
    fill(reader, reader->length, LP_FRAME_LENGTH);
    if (reader->have < LP_FRAME_LENGTH) return LP_FRAME_MORE;
    uint64_t length = length_of(reader);
    if (length > reader->most) return LP_FRAME_LONG;
    if (length > 0 && !begin_frame(reader, length)) return LP_FRAME_BROKEN;
    if (length > 0) break;
    reader->beats++;
    reader->have = 0;
  }
  fill(reader, reader->frame, reader->size);
  return reader->have == reader->size ? LP_FRAME_WHOLE : LP_FRAME_MORE;
}

lp_frame_progress lp_frame_read(lp_frame_reader *reader, lp_stream *stream, unsigned reads) {
  stream->reads = reads;
  for (;;) {
    lp_frame_progress progress = use_ahead(reader);
    if (progress != LP_FRAME_MORE) return progress;
    bool into_place = reader->frame != NULL;
    ssize_t got = into_place ? lp_stream_read(stream, reader->frame + reader->have, reader->size - reader->have)
                             : lp_stream_read(stream, reader->ahead, LP_FRAME_AHEAD);
    if (got <= 0) return got < 0 ? LP_FRAME_BROKEN : LP_FRAME_MORE;
    reader->have += into_place ? (size_t)got : 0;
    reader->begin = 0;
    reader->end = into_place ? 0 : (size_t)got;
  }
}

uint8_t *lp_frame_take(lp_frame_reader *reader, size_t *size) {
  uint8_t *frame = reader->frame;
  *size = reader->size;
  reader->frame = NULL;
  reader->have = 0;
  return frame;
}

void lp_frame_reader_free(lp_frame_reader *reader) {
  free(reader->frame);
  reader->frame = NULL;
}

void lp_frame_split(lp_frame_parts *out, const void *head, size_t head_size, const void *body, size_t body_size) {
  for (int i = 0; i < LP_FRAME_LENGTH; i++)
    out->length[i] = (uint8_t)((uint64_t)(head_size + body_size) >> (8 * i));
  out->part[0] = (struct iovec){out->length, LP_FRAME_LENGTH};
  out->part[1] = (struct iovec){(void *)(uintptr_t)head, head_size};
  out->part[2] = (struct iovec){(void *)(uintptr_t)body, body_size};
  out->size = LP_FRAME_LENGTH + head_size + body_size;
}
