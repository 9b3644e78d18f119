/* The connections of a channel, and the two threads that serve them. A device's channel has one peer, and only its
 * caller's thread. A listener's has many, and a second thread, the attendant: the caller serves the sockets while it is
 * in receive, the attendant while the caller computes. One mutex guards all; it is held except in sleep. Frames of one
 * peer are taken one by one: a peer is not read from while a frame of its own waits. Private to the folder. */
#ifndef LP_LINK_CHANNEL_H
#define LP_LINK_CHANNEL_H

#include <pthread.h>

#include "runtime/link/conn.h"
#include "runtime/link/socket.h"

typedef struct {
  uint32_t id, events; /* `events` that epoll reports; 0: none, not even an end */
  bool permitted;
  bool finishing;   /* is closed when its queue was sent */
  bool news;        /* is in `news` of the channel */
  double since_ms;  /* since when a stranger must say something to be permitted */
  double queued_ms; /* since when its news wait for the caller: that is not its fault */
  lp_sockaddr at;
  lp_conn conn;
} lp_peer;

struct lp_channel {
  struct ssl_ctx_st *tls;    /* borrowed; NULL: plain */
  lp_socket_listener socket; /* fd -1: a device's channel */
  int epoll, wake;           /* `wake`: an eventfd for the attendant */
  lp_spin spin;              /* of the caller */
  pthread_t attendant;
  bool started;
  pthread_mutex_t mutex;
  /* Under the mutex: */
  LP_VEC(lp_peer *) peers;
  LP_VEC(lp_peer *)
  news; /* those with a whole frame, a frame that is too long, or an end, in the order in which they came */
  uint32_t last_id;
  double due_ms;  /* no deadline is before this */
  bool receiving; /* the caller serves the sockets */
  bool attending; /* the attendant does */
  bool sleeping;  /* the attendant sleeps until it is woken */
  bool closing;
  double left_ms; /* when the caller left receive */
  bool full;      /* connections wait for descriptors */
  bool tells;     /* that is to be reported */
  double told_ms; /* when it was last */
  /* Of a device: */
  lp_patience patience;
  bool awaited;              /* the last receive had to wait, and no frame has come since */
  double heard_ms, asked_ms; /* when something came last; when a sign of life was asked for */
};

/* All but these two are called with the mutex held. */
lp_channel *lp_channel_create(const lp_security *security);
void *lp_channel_attend(void *channel); /* the attendant's thread */

bool lp_channel_is_device(const lp_channel *channel);
/* Takes the socket over. The peer has news at once if there is no memory for it. */
lp_peer *lp_channel_add(lp_channel *channel, int fd, const lp_sockaddr *at);
/* Closes the connection, of which the caller is then told. `why` is the reason if it has none yet; NULL: it was closed.
 * A frame that is whole can still be taken. */
void lp_channel_lose(lp_channel *channel, lp_peer *of, const char *why);
/* Frees a peer that is not in `news`. */
void lp_channel_forget(lp_channel *channel, lp_peer *of);
/* A device waits until the socket has taken the frame; a listener queues what the socket does not take. */
bool lp_channel_put(lp_channel *channel, lp_peer *to, const void *head, size_t head_size, const void *body,
                    size_t body_size);
/* Uses what came, and what one read of the socket brings if `socket` is set. */
void lp_channel_read(lp_channel *channel, lp_peer *of, bool socket);
/* Reads a peer again whose frame was taken. */
void lp_channel_resume(lp_channel *channel, lp_peer *of);
/* The caller sleeps, without the mutex, until something comes, a deadline is met, or the time is over, and serves what
 * came. False: the time is over, or a listener's caller was woken by a signal. */
bool lp_channel_serve(lp_channel *channel, double until);
void lp_channel_wake_attendant(lp_channel *channel);

#endif
