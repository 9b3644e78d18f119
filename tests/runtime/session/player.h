/* A worker that plays what a test wrote down, whatever a session asks it. */
#ifndef LP_TESTS_PLAYER_H
#define LP_TESTS_PLAYER_H

#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"

enum { MOST_REPLIES = 8 };

typedef struct {
  lp_recv_outcome outcome;
  Lp__Wire__Message__KindCase kind; /* of a frame */
  int32_t number;                   /* the step, or a probe's number */
  size_t payload;
  size_t tokens, confidences;
  int32_t token;
  double busy_ms;
  bool lost;
  int64_t draw;
} reply;

typedef struct {
  reply reply[MOST_REPLIES]; /* after the last one nothing comes in time */
  size_t count, next;
  bool repeats; /* plays the first reply for ever */
  bool deaf;    /* takes no message */
  size_t sends, sent[MOST_REPLIES];
  int fd;
} player;

#define FRAME(which, ...) {.outcome = LP_RECV_FRAME, .kind = LP__WIRE__MESSAGE__KIND_##which, __VA_ARGS__}
#define NOTHING {.outcome = LP_RECV_TIMEOUT}

/* Connects a wire to the player, which lives longer; lp_wire_close frees it. */
lp_wire *player_connect(player *of);

#endif
