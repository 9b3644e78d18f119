/* What the files of a deployment have in common. Private to fleet/. */
#pragma once

#include "fleet/fleet.h"

enum { LP_DEPLOY_SERVE_PORT = 8080, LP_DEPLOY_WORKER_PORT = 7700, LP_DEPLOY_METRICS_PORT = 7790 };
/* Where the machines of a pool find the deployment's folder. */
#define LP_DEPLOY_ROOT "/srv/llmpart"

typedef struct {
  const lp_fleet_spec *spec;
  const lp_fleet_pool *pool;
  const lp_fleet_kind *kind;
  bool is_serve;     /* all layers are in the cloud; else the machines are workers */
  char name[80];     /* "pool-0-a30": a DNS label, as Kubernetes wants it */
  char machine[64];  /* "a30": the value of a label */
  char region[64];   /* the same; "": there are none */
  int64_t cache_mib; /* KV caches of all sessions, one of them the longest */
  int64_t longest;   /* tokens of the longest answer */
  double
      requests_a_pod; /* in flight in the busiest hour, by Little's law from the medians; spare machines share them */
} lp_deploy_pool;

/* Appends the manifests of a pool (kubernetes.c). */
void lp_deploy_kubernetes(const lp_deploy_pool *pool, lp_buf *out);
