# Libraries from Debian, as imported targets PkgConfig::NAME and nng::nng. Each folder links the ones it uses; LLVM is
# looked for by backend/ alone.
find_package(PkgConfig REQUIRED)
if("hwmodels" IN_LIST LP_FOLDERS) # machine and link files; a device has none
  pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
  pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl)
endif()
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(MbedTLS QUIET)
find_package(nng CONFIG REQUIRED)
find_program(LP_PROTOC_C protoc-c REQUIRED)
if(BUILD_TESTING)
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
endif()
