/* The manifests of a pool for Kubernetes: a Deployment, a Service, a HorizontalPodAutoscaler and a PodDisruptionBudget.
 */
#include "fleet/deploy.h"

#include <math.h>

/* ---- the container ----------------------------------------------------------------------------------------------- */

static void put_arguments(const lp_deploy_pool *pool, lp_buf *out) {
  if (pool->is_serve) {
    lp_buf_printf(out, "          args: [serve, " LP_DEPLOY_ROOT "/%s.serve.yaml]\n", pool->name);
    return;
  }
  lp_buf_printf(out,
                "          args:\n"
                "            - worker\n"
                "            - " LP_DEPLOY_ROOT "/bundles/%s.llmpart\n"
                "            - --listen=0.0.0.0:%d\n"
                "            - --key-file=/etc/llmpart/link.key\n"
                "            - --context-budget=%" PRId64 "MiB\n"
                "            - --prompt-stretch=%g\n"
                "            - --metrics=0.0.0.0:%d\n",
                pool->name, LP_DEPLOY_WORKER_PORT, pool->cache_mib, pool->pool->policy.stretch, LP_DEPLOY_METRICS_PORT);
}

static void put_ports(const lp_deploy_pool *pool, lp_buf *out) {
  lp_buf_printf(out, "          ports:\n            - { name: main, containerPort: %d }\n",
                pool->is_serve ? LP_DEPLOY_SERVE_PORT : LP_DEPLOY_WORKER_PORT);
  if (!pool->is_serve)
    lp_buf_printf(out, "            - { name: metrics, containerPort: %d }\n", LP_DEPLOY_METRICS_PORT);
  const char *asked = pool->is_serve ? "main" : "metrics"; /* it takes half an hour to load at most */
  lp_buf_printf(out,
                "          startupProbe: { httpGet: { path: /readyz, port: %s }, periodSeconds: 5, failureThreshold: "
                "360 }\n"
                "          readinessProbe: { httpGet: { path: /readyz, port: %s }, periodSeconds: 5 }\n",
                asked, asked);
  lp_buf_printf(out, "          livenessProbe: { %s, periodSeconds: 10 }\n",
                pool->is_serve ? "httpGet: { path: /health, port: main }" : "tcpSocket: { port: main }");
}

/* The memory of a GPU is its own; what the host needs beside it is not known here. */
static void put_resources(const lp_deploy_pool *pool, lp_buf *out) {
  const lp_machine *machine = pool->kind->machine;
  if (machine->kind != LP_MACHINE_GPU)
    lp_buf_printf(out, "          resources: { requests: { memory: %" PRId64 "Mi } }\n",
                  pool->cache_mib + (int64_t)ceil(pool->pool->weight_bytes / 1048576));
  else if (lp_streq(machine->target.gpu_interface, "cuda"))
    lp_buf_puts(out, "          resources: { limits: { nvidia.com/gpu: 1 } }\n");
}

static void put_container(const lp_deploy_pool *pool, lp_buf *out) {
  lp_buf_puts(out, "      containers:\n"
                   "        - name: llmpart\n"
                   "          image: llmpart:latest # examples/container\n");
  put_arguments(pool, out);
  lp_buf_printf(out,
                "          env:\n"
                "            - name: %s\n"
                "              valueFrom: { secretKeyRef: { name: llmpart, key: %s } }\n",
                pool->is_serve ? "LLMPART_KEY" : "LLMPART_METRICS_KEY", pool->is_serve ? "serve-key" : "metrics-key");
  put_ports(pool, out);
  put_resources(pool, out);
  lp_buf_puts(out, "          securityContext:\n"
                   "            allowPrivilegeEscalation: false\n"
                   "            readOnlyRootFilesystem: true\n"
                   "            capabilities: { drop: [ALL] }\n"
                   "          volumeMounts:\n"
                   "            - { name: deployment, mountPath: " LP_DEPLOY_ROOT ", readOnly: true }\n"
                   "            - { name: scratch, mountPath: /tmp }\n");
  if (!pool->is_serve) lp_buf_puts(out, "            - { name: key, mountPath: /etc/llmpart, readOnly: true }\n");
}

/* ---- the objects ------------------------------------------------------------------------------------------------- */

/* Starts with all machines; the autoscaler takes over from there. With a spare machine a new version needs no other. */
static void put_deployment(const lp_deploy_pool *pool, lp_buf *out) {
  const int64_t spare = pool->spec->spare;
  const bool region = *pool->region;
  lp_buf_printf(out,
                "apiVersion: apps/v1\n"
                "kind: Deployment\n"
                "metadata: { name: %s, labels: { app: %s } }\n"
                "spec:\n"
                "  replicas: %" PRId64 "\n"
                "  selector: { matchLabels: { app: %s } }\n"
                "  strategy: { rollingUpdate: { maxUnavailable: %" PRId64 ", maxSurge: %d } }\n"
                "  template:\n"
                "    metadata:\n"
                "      labels: { app: %s }\n"
                "      annotations: { prometheus.io/scrape: \"true\", prometheus.io/port: \"%d\" }\n"
                "    spec:\n"
                "      nodeSelector: { llmpart.io/machine: \"%s\"%s%s%s }\n"
                "      terminationGracePeriodSeconds: 60\n"
                "      securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 }\n",
                pool->name, pool->name, pool->pool->count, pool->name, spare, spare == 0, pool->name,
                pool->is_serve ? LP_DEPLOY_SERVE_PORT : LP_DEPLOY_METRICS_PORT, pool->machine,
                region ? ", topology.kubernetes.io/region: \"" : "", region ? pool->region : "", region ? "\"" : "");
  put_container(pool, out);
  lp_buf_puts(out, "      volumes:\n"
                   "        - { name: deployment, persistentVolumeClaim: { claimName: llmpart, readOnly: true } }\n"
                   "        - { name: scratch, emptyDir: {} }\n");
  if (!pool->is_serve)
    lp_buf_puts(out, "        - name: key\n"
                     "          secret: { secretName: llmpart, defaultMode: 0440, items: [{ key: link.key, path: "
                     "link.key }] }\n");
}

static void put_service(const lp_deploy_pool *pool, lp_buf *out) {
  lp_buf_printf(out,
                "---\n"
                "apiVersion: v1\n"
                "kind: Service\n"
                "metadata: { name: %s }\n"
                "spec:\n"
                "  selector: { app: %s }\n"
                "  ports: [{ name: main, port: %d, targetPort: main }]\n",
                pool->name, pool->name, pool->is_serve ? LP_DEPLOY_SERVE_PORT : LP_DEPLOY_WORKER_PORT);
}

/* The fewest replicas: one and the spare machines; with hours, as many as the hour with the fewest needs. */
static int64_t least_of(const lp_deploy_pool *pool) {
  int64_t least = pool->pool->needed;
  if (!pool->spec->day.given) return pool->spec->spare + 1;
  for (int h = 0; h < LP_SIM_HOURS; h++)
    if (pool->pool->by_hour[h] < least) least = pool->pool->by_hour[h];
  return least + pool->pool->count - pool->pool->needed;
}

/* In the busiest hour the target asks for all machines of the pool, and never for more. */
static void put_autoscaler(const lp_deploy_pool *pool, lp_buf *out) {
  const int64_t count = pool->pool->count, least = least_of(pool);
  lp_buf_printf(out,
                "---\n"
                "apiVersion: autoscaling/v2\n"
                "kind: HorizontalPodAutoscaler\n"
                "metadata: { name: %s }\n"
                "spec:\n"
                "  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: %s }\n"
                "  minReplicas: %" PRId64 "\n"
                "  maxReplicas: %" PRId64 "\n"
                "  metrics:\n"
                "    - type: Pods\n"
                "      pods:\n"
                "        metric: { name: %s }\n"
                "        target: { type: AverageValue, averageValue: %.0fm }\n",
                pool->name, pool->name, least < count ? least : count, count,
                pool->is_serve ? "llmpart_requests_in_flight"
                               : "llmpart_worker_open, selector: { matchLabels: { of: sessions } }",
                fmax(1, floor(1e3 * pool->requests_a_pod)));
}

void lp_deploy_kubernetes(const lp_deploy_pool *pool, lp_buf *out) {
  put_deployment(pool, out);
  put_service(pool, out);
  put_autoscaler(pool, out);
  lp_buf_printf(out,
                "---\n"
                "apiVersion: policy/v1\n"
                "kind: PodDisruptionBudget\n"
                "metadata: { name: %s }\n"
                "spec:\n"
                "  maxUnavailable: %" PRId64 "\n"
                "  selector: { matchLabels: { app: %s } }\n",
                pool->name, pool->spec->spare, pool->name);
}
