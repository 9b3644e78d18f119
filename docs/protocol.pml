/* docs/protocol.md, "Halves that run independently", as a model for spin: exact mode, with every fault that a network,
 * a worker and a device can have.
 *
 * Only this matters of a position's row: it is the true token's (RIGHT) or a refused draft's (WRONG). Positions 0 to
 * `given` are certain. In a round the device drafts a token for position given + 1, which may be right or wrong, and
 * asks after it. The worker must never answer from a row that is wrong where the text is certain; the assertions state
 * this.
 *
 *   spin -a docs/protocol.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan        (tests/docs/protocol.sh)
 *
 * -DNP and -l look for cycles without progress instead: the device never asks for ever without progress. */

#ifndef TOKENS
#define TOKENS 4 /* to be given out, after a prompt of one */
#endif
#define ROWS 7
#ifndef FAULTS
/* messages lost, doubled or late, crashes of either side, impatience of the device: this many, at any point */
#define FAULTS 3
#endif

#define NONE 0
#define RIGHT 1
#define WRONG 2
#define UNKNOWN 255

mtype = { JOIN, ROW, ASK, ANSWER, LACK };

/* Messages of both connections. `??` lets a kind of message overtake the others; the network makes any of them late. */
/* kind; epoch; floor; position or question; row or position after the draft */
chan up = [4] of { mtype, byte, byte, byte, byte };
chan down = [2] of { mtype, byte, byte };           /* kind; question; drafts that hold, or the position lacked */

byte faults = FAULTS;

/* The device. */
byte text[ROWS]; /* its rows */
byte given, made, epoch, floor, number, position;
byte kept; /* of the tokens given, those in its session file */
bool finished;

/* The worker's context: gone when it crashes. */
byte row[ROWS];
byte wepoch, wfloor, answered, accepted;
bool known;

inline forget_from(first) {
  k = first;
  do
  :: k < ROWS -> row[k] = NONE; k++
  :: else -> break
  od;
  k = 0
}

/* Of epochs that were left out the floors are not known, but floors only grow. */
inline enter(e, f) {
  if
  :: e == wepoch + 1 -> forget_from(f); wepoch = e; wfloor = f
  :: e > wepoch + 1 -> k = (f < wfloor -> f : wfloor); forget_from(k); wepoch = e; wfloor = f
  :: else -> skip
  fi
}

inline count_held() {
  held = 0;
  do
  :: held < ROWS && row[held] != NONE -> held++
  :: else -> break
  od
}

inline reply(kind, question, value) {
  if
  :: nfull(down) -> down!kind, question, value
  :: full(down) -> skip /* lost */
  fi
}

active proctype worker() {
  byte e, f, n, what, held, k;
end:
  do
  :: atomic { up??JOIN, e, f, n, what ->
       if
       :: known -> enter(e, f)
       :: else -> known = true; wepoch = e; wfloor = f; answered = 0; forget_from(0)
       fi;
       e = 0; f = 0; n = 0; what = 0 }
  :: atomic { up??ROW, e, f, n, what ->
       if
       :: known && e >= wepoch ->
          enter(e, f);
          if
          :: row[n] == NONE -> row[n] = what
          :: else -> skip
          fi
       :: else -> skip
       fi;
       e = 0; f = 0; n = 0; what = 0 }
  :: atomic { up??ASK, e, f, n, what ->
       if
       :: !known -> reply(LACK, n, UNKNOWN)
       :: known && n == answered -> reply(ANSWER, n, accepted)
       :: known && n > answered && e >= wepoch ->
          enter(e, f);
          count_held();
          if
          :: held > what ->
             k = 0;
             do
             :: k < what -> assert(row[k] == RIGHT); k++
             :: else -> break
             od;
             accepted = (row[what] == RIGHT -> 1 : 0);
             answered = n;
             forget_from(what + accepted);
             wepoch = e + 1;
             wfloor = what + accepted;
             reply(ANSWER, n, accepted)
          :: else -> reply(LACK, n, held)
          fi
       :: else -> skip /* late */
       fi;
       e = 0; f = 0; n = 0; what = 0; held = 0; k = 0 }
  od
}

/* What finds no room is lost: the worker will lack it. */
inline send_rows(first) {
  position = first;
  do
  :: position < made ->
     if
     :: nfull(up) -> up!ROW, epoch, floor, position, text[position]
     :: full(up) -> skip
     fi;
     position++
  :: else -> break
  od;
  position = 0
}

inline send(kind, n, what) {
  if
  :: nfull(up) -> up!kind, epoch, floor, n, what
  :: full(up) -> skip
  fi
}

/* Another process continues from the session file. No message of an earlier one has its epoch or a newer one. */
inline resume() {
  given = kept;
  floor = given;
  epoch = epoch + 2;
  send(JOIN, 0, 0)
}

active proctype device() {
  byte n, value;
  atomic { text[0] = RIGHT; send(JOIN, 0, 0) }
  do
  :: given < TOKENS ->
progress_round:
     atomic { /* the certain token's row, and a draft's after it */
       text[given] = RIGHT;
       if
       :: text[given + 1] = RIGHT
       :: text[given + 1] = WRONG
       fi;
       made = given + 2;
       number++;
       send_rows(floor);
       send(ASK, number, given + 1)
     }
     do
     :: atomic { down??ANSWER, n, value ->
          if
          :: n == number ->
             assert(value == (text[given + 1] == RIGHT -> 1 : 0)); /* else a token would be changed, or lost */
             given = given + 1 + value;
             epoch++;
             floor = given;
             if /* what is given is kept now or later */
             :: kept = given
             :: skip
             fi;
             n = 0; value = 0;
             break
          :: else -> assert(n < number)
          fi;
          n = 0; value = 0 }
     :: atomic { down??LACK, n, value ->
          if
          :: n == number && value == UNKNOWN -> send(JOIN, 0, 0); send(ASK, number, given + 1)
          :: n == number && value != UNKNOWN -> send_rows(value); send(ASK, number, given + 1)
          :: else -> skip
          fi;
          n = 0; value = 0 }
     :: atomic { timeout -> send(ASK, number, given + 1) }
     :: atomic { faults > 0 -> faults--; resume(); break } /* a crash of the device */
     :: atomic { faults > 0 -> faults--; send(ASK, number, given + 1) } /* too early */
     od
  :: else -> break
  od;
  finished = true
}

active proctype network() {
  byte e, f, n, what;
  mtype kind;
end:
  do
  :: atomic { faults > 0 && len(up) > 0 -> faults--; up?kind, e, f, n, what; e = 0; f = 0; n = 0; what = 0 } /* lost */
  :: atomic { faults > 0 && len(down) > 0 -> faults--; down?kind, n, what; n = 0; what = 0 }
  /* twice */
  :: atomic { faults > 0 && len(up) > 0 && nfull(up) -> faults--; up?<kind, e, f, n, what>; up!kind, e, f, n, what;
       e = 0; f = 0; n = 0; what = 0 }
  :: atomic { faults > 0 && len(down) > 0 && nfull(down) -> faults--; down?<kind, n, what>; down!kind, n, what;
       n = 0; what = 0 }
  :: atomic { faults > 0 && len(up) > 1 -> faults--; up?kind, e, f, n, what; up!kind, e, f, n, what; /* late */
       e = 0; f = 0; n = 0; what = 0 }
  /* a crash */
  :: atomic { faults > 0 && known -> faults--; known = false; answered = 0; wepoch = 0; wfloor = 0; accepted = 0 }
  od
}
