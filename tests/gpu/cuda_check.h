// What cuda_host.h tells cuda_check.cpp, which compares the accesses of a launch's threads. Threads are numbered within
// their block; accesses outside of a thread do not count.
#pragma once

#include <cstddef>

extern "C" {
// Memory that is not the kernel's: stacks of threads and the emulator's own.
void lp_check_ignore(int which, const void *begin, size_t bytes);
// A launch, block or part of a block between two barriers begins.
void lp_check_launch();
void lp_check_block(unsigned x, unsigned y, unsigned z);
void lp_check_barrier();
// The threads of this warp have met: what they do from now on comes after what they did.
void lp_check_warp_barrier(unsigned warp);
// The thread that runs from now on; -1: none.
void lp_check_thread(int thread);
// An asynchronous copy to these bytes was begun, and was waited for.
void lp_check_copy_begins(const void *to, size_t bytes);
void lp_check_copy_ends(const void *to, size_t bytes);
}
