/* The first use of `host`: a short profile of this machine, once. */
#include "base/clock.h"
#include "tools/hw/profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* Other work slows the measurements down. */
static void note_load(double load, lp_diag *diag) {
  double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
  if (load > cores)
    lp_warning(diag, LP_LOC_FILE("host"),
               "other work ran while it was measured (a load of %.1f on %.0f cores), so predicted times may be too "
               "long: `llmpart hw profile` measures it again",
               load, cores);
}

/* The command does without a profile. */
static void note_none(const char *why, lp_diag *diag) {
  lp_note(diag, LP_LOC_FILE("host"),
          "predicted times are estimates, because %s; LLMPART_HOST may name a file of `llmpart hw profile`", why);
}

static const char unkept[] = "measurements cannot be kept in a cache folder";

static void note_failure(const lp_diag *failed, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf why = {0}, text = {0};
  if (lp_diag_count(failed) > 0) lp_diag_format(lp_diag_get(failed, 0), &text);
  lp_buf_printf(&why, "this machine could not be measured (%s)", lp_buf_text(&text));
  note_none(lp_buf_text(&why), diag);
}

static void profile(const char *path, lp_diag *diag) {
  double load = 0, begin_ms = lp_now_ms();
  bool kept = false;
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  (void)getloadavg(&load, 1);
  if (hw_profile_quickly(&kept, inner) != LP_OK) {
    note_failure(inner, diag);
  } else if (!kept) {
    note_none(unkept, diag);
  } else {
    lp_note(diag, LP_LOC_FILE("host"),
            "this machine was measured for its first use in %.0f s; the figures are kept in '%s', and `llmpart hw "
            "profile` measures it thoroughly",
            (lp_now_ms() - begin_ms) / 1e3, path);
    note_load(load, diag);
  }
}

static lp_status is_measured(bool *out, lp_diag *diag) {
  lp_machine *host = NULL;
  LP_TRY(lp_hw_host(&host, diag));
  *out = lp_hw_measured_source(host) != NULL;
  lp_hw_free(host);
  return LP_OK;
}

/* Profiles the machine unless another process has done so by the time that this one has the lock. */
static lp_status profile_once(const char *path, int lock, lp_diag *diag) {
  bool measured = false;
  if (flock(lock, LOCK_EX) != 0) return LP_OK;
  LP_TRY(is_measured(&measured, diag));
  if (!measured) profile(path, diag);
  return LP_OK;
}

/* Opens the file beside the kept figures that processes lock; -1: nothing can be kept. */
static int open_lock(const char *path) {
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_printf(&name, "%s.lock", path);
  return open(lp_buf_text(&name), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

lp_status hw_profile_first_use(const char *device, const char *cloud, lp_diag *diag) {
  bool measured = false;
  if ((!lp_hw_is_host(device) && !lp_hw_is_host(cloud)) || lp_hw_host_is_given()) return LP_OK;
  LP_TRY(is_measured(&measured, diag));
  if (measured) return LP_OK;
  LP_OWNED(lp_free_at) char *path = lp_hw_host_path();
  int lock = path ? open_lock(path) : -1;
  lp_status status = LP_OK;
  if (lock >= 0)
    status = profile_once(path, lock, diag);
  else
    note_none(unkept, diag);
  if (lock >= 0) close(lock);
  return status;
}
