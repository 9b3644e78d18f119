# Libraries from Debian, as imported targets PkgConfig::NAME. Each folder links the ones it uses; only backend/ looks
# for LLVM.
if(LP_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl)
pkg_check_modules(ONIGURUMA REQUIRED IMPORTED_TARGET oniguruma)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl>=3.0)
find_program(LP_PROTOC_C protoc-c REQUIRED)
if(BUILD_TESTING)
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson) # judges what base/json writes
endif()
