# Toolchain file: the device side of the project (base, runtime, tools) for 64-bit ARM Linux, on any Debian machine.
#   sh tools/sysroot-aarch64.sh build/sysroot-aarch64
#   cmake --preset device-aarch64 && cmake --build --preset device-aarch64      # one static program
# Without LP_STATIC=ON the program needs the sysroot's libraries: it runs under `qemu-aarch64 -L /usr/aarch64-linux-gnu`
# with LD_LIBRARY_PATH at them, and opens GPUs' drivers, which a static program cannot.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LP_SYSROOT)
cmake_path(ABSOLUTE_PATH LP_SYSROOT BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/.. NORMALIZE)
set(CMAKE_FIND_ROOT_PATH ${LP_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LP_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${LP_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(CMAKE_C_FLAGS_INIT "-isystem ${LP_SYSROOT}/usr/include -isystem ${LP_SYSROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-L${LP_SYSROOT}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${LP_SYSROOT}/usr/lib/aarch64-linux-gnu")
