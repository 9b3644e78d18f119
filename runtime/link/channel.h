/* The connections of a channel, and the threads that serve them. A device's channel has one peer and is served by its
 * caller's thread. A listener's channel has many peers and a second thread, the attendant: the caller serves the
 * sockets while it is in receive, the attendant while the caller computes. One mutex guards everything; a thread
 * releases it only to sleep. Frames of a peer are taken one by one: its socket is not read while a complete frame
 * waits. Private to the folder. */
#pragma once

#include <pthread.h>

#include "runtime/link/conn.h"
#include "runtime/link/socket.h"

typedef struct {
  uint32_t id, events; /* `events` that epoll reports; 0: none, not even an end */
  bool permitted;
  bool finishing;   /* the connection is closed when its queue has been sent */
  bool news;        /* the peer is in the channel's `news` */
  double since_ms;  /* a stranger must be permitted within stranger_ms of this time */
  double queued_ms; /* when its news began to wait for the caller; a stranger's time stops meanwhile */
  lp_sockaddr at;
  lp_conn conn;
} lp_peer;

struct lp_channel {
  struct ssl_ctx_st *tls;    /* borrowed; NULL: plain */
  lp_socket_listener socket; /* the listening socket; fd -1: a device's channel */
  int epoll, wake;           /* `wake`: an eventfd for the attendant */
  int nudge;                 /* an eventfd that wakes a listener's caller */
  bool many_cores, brief;    /* of the caller: polling pays (lp_socket_poll), and its last wait was brief */
  pthread_t attendant;
  bool started;
  pthread_mutex_t mutex;
  /* Under the mutex: */
  LP_VEC(lp_peer *) peers;
  /* Peers with a complete frame, a frame that is too long, or a closed connection, in the order of arrival. */
  LP_VEC(lp_peer *) news;
  uint32_t last_id;
  double due_ms;  /* no deadline is earlier */
  bool receiving; /* the caller is in receive and serves the sockets */
  bool attending; /* the attendant serves the sockets */
  bool sleeping;  /* the attendant sleeps until it is woken */
  bool closing;
  double left_ms; /* when the caller left receive */
  bool full;      /* connections cannot be accepted for lack of descriptors */
  bool tells;     /* the next receive reports this */
  double told_ms; /* when it was last reported */
  bool nudged;    /* a listener's receive returns early */
  /* Of a device: */
  lp_patience patience;
  bool awaited;              /* the last receive waited, and no frame has come since */
  double heard_ms, asked_ms; /* when bytes last came; when a sign of life was requested */
};

/* These two are called without the mutex, all functions below with it. */
lp_channel *lp_channel_create(const lp_security *security);
void *lp_channel_attend(void *channel); /* the attendant's thread */

bool lp_channel_is_device(const lp_channel *channel);
/* Makes a peer that owns the socket. If memory is out, the peer has news at once: the end of its connection. */
lp_peer *lp_channel_add(lp_channel *channel, int fd, const lp_sockaddr *at);
/* Closes the connection, which the caller then learns as news. `why` is noted as the reason if none was noted; NULL:
 * the other side closed it. A complete frame can still be taken. */
void lp_channel_lose(lp_channel *channel, lp_peer *of, const char *why);
/* Frees a peer that is not in `news`. */
void lp_channel_forget(lp_channel *channel, lp_peer *of);
/* Sends a frame. A device waits until the socket has taken it; a listener queues the bytes that the socket does not
 * take. */
bool lp_channel_put(lp_channel *channel, lp_peer *to, const void *head, size_t head_size, const void *body,
                    size_t body_size);
/* Processes the bytes received, and with `socket` set those of one more read. */
void lp_channel_read(lp_channel *channel, lp_peer *of, bool socket);
/* Reads from a peer again after its frame was taken. */
void lp_channel_resume(lp_channel *channel, lp_peer *of);
/* Lets the caller sleep, without the mutex, until bytes come, a deadline is reached, or the time is over, and then
 * serves the sockets. False: the time is over, or a signal woke a listener's caller. */
bool lp_channel_serve(lp_channel *channel, double until);
void lp_channel_wake_attendant(lp_channel *channel);
