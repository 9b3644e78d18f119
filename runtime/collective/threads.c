/* Ranks that are threads of one process. A call publishes where its data lies, waits for all ranks, copies, and waits
 * again, so that no rank changes data that another still reads. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/cores.h"
#include "runtime/collective/collective.h"

enum { MOST_SPINS = 2000 }; /* before a rank sleeps */

typedef struct {
  lp_thread_ranks *ranks;
  int32_t rank;
  const void *data; /* what the rank offers in the call under way */
} rank_end;

struct lp_thread_ranks {
  int32_t count;
  rank_end *end; /* [count] */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t arrived;      /* under `lock` */
  atomic_uint phase;    /* counts the meetings of all ranks; set under `lock` */
  atomic_bool given_up; /* set under `lock` */
};

/* Waits for all ranks; false: one has given up. */
static bool meet(lp_thread_ranks *ranks) {
  pthread_mutex_lock(&ranks->lock);
  unsigned phase = atomic_load(&ranks->phase);
  if (++ranks->arrived == ranks->count) {
    ranks->arrived = 0;
    atomic_store(&ranks->phase, phase + 1);
    pthread_cond_broadcast(&ranks->changed);
  }
  pthread_mutex_unlock(&ranks->lock);
  for (int i = 0; i < MOST_SPINS && atomic_load(&ranks->phase) == phase && !atomic_load(&ranks->given_up); i++)
    if (i % 64 == 63) lp_give_way();
  if (atomic_load(&ranks->phase) == phase) {
    pthread_mutex_lock(&ranks->lock);
    while (atomic_load(&ranks->phase) == phase && !atomic_load(&ranks->given_up))
      pthread_cond_wait(&ranks->changed, &ranks->lock);
    pthread_mutex_unlock(&ranks->lock);
  }
  return !atomic_load(&ranks->given_up);
}

static bool broadcast(void *self, void *data, size_t size) {
  rank_end *end = self;
  end->data = data;
  if (!meet(end->ranks)) return false;
  if (end->rank > 0 && size > 0) memcpy(data, end->ranks->end[0].data, size);
  return meet(end->ranks);
}

static bool all_gather(void *self, const void *part, size_t size, void *all) {
  rank_end *end = self;
  end->data = part;
  if (!meet(end->ranks)) return false;
  for (int32_t i = 0; size > 0 && i < end->ranks->count; i++)
    memcpy((char *)all + (size_t)i * size, end->ranks->end[i].data, size);
  return meet(end->ranks);
}

static bool has_ended(void *self) {
  return atomic_load(&((rank_end *)self)->ranks->given_up);
}

static void give_up(void *self) {
  lp_thread_ranks *ranks = ((rank_end *)self)->ranks;
  pthread_mutex_lock(&ranks->lock);
  atomic_store(&ranks->given_up, true);
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
}

lp_thread_ranks *lp_thread_ranks_create(int32_t count, lp_collective *ends) {
  lp_thread_ranks *ranks = lp_alloc(sizeof *ranks);
  ranks->count = count;
  ranks->end = lp_alloc((size_t)count * sizeof *ranks->end);
  pthread_mutex_init(&ranks->lock, NULL);
  pthread_cond_init(&ranks->changed, NULL);
  for (int32_t i = 0; i < count; i++) {
    ranks->end[i] = (rank_end){.ranks = ranks, .rank = i};
    ends[i] = (lp_collective){.rank = i,
                              .count = count,
                              .self = &ranks->end[i],
                              .broadcast = broadcast,
                              .all_gather = all_gather,
                              .give_up = give_up,
                              .has_ended = has_ended};
  }
  return ranks;
}

void lp_thread_ranks_free(lp_thread_ranks *ranks) {
  if (!ranks) return;
  pthread_cond_destroy(&ranks->changed);
  pthread_mutex_destroy(&ranks->lock);
  free(ranks->end);
  free(ranks);
}
