/* Early exits in passes: a token of which an exit is sure enough is taken there (P2's threshold mode), and the worker
 * is asked for the others only. The device's layers run for all sequences of a pass, whose rows share the weights. Rows
 * for the cloud wait here until the worker is asked: it then runs all of them at once. Without the worker the last exit
 * gives the tokens, and the next question brings the rows of the whole text. Belongs to the engine's thread. Private to
 * engine/. */
#pragma once

#include "runtime/engine/state.h"

bool engine_exits_fits(const lp_bundle *bundle, const char **why);
/* Tells whether the pass needs the heads of exits. */
bool engine_exits_wanted(const lp_engine *engine);
/* Takes the tokens of an exit's output step from jobs that have none yet. */
LP_MUST_USE lp_status engine_exits_take(lp_engine *engine, const lp_step *step, lp_diag *diag);
/* Keeps the rows of a send step. */
LP_MUST_USE lp_status engine_exits_keep(lp_engine *engine, int32_t program, const lp_step *step, lp_diag *diag);
/* At the end of a pass: asks the worker for the tokens that no exit gave. */
void engine_exits_ask(lp_engine *engine);
