# The flags of every target. Optimisation comes from the build type; RelWithDebInfo, the default, keeps
# assertions, Release drops them.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
if(LP_SANITIZE OR LP_THREAD_SANITIZE OR LP_COVERAGE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1") # compiles faster than -O2 -g, and reports still name lines
endif()

# Options that link with lld, which takes a tenth of the time of GNU ld.
set(LP_USE_LLD "")
find_program(LP_LLD NAMES ld.lld-19 ld.lld)
if(LP_LLD)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/linker)
  file(CREATE_LINK ${LP_LLD} ${PROJECT_BINARY_DIR}/linker/ld.lld SYMBOLIC) # the name that gcc looks for
  set(LP_USE_LLD -B${PROJECT_BINARY_DIR}/linker -fuse-ld=lld)
endif()

if(LP_STATIC) # small, and without what no function of the program uses, nor tables to unwind stacks
  set(CMAKE_C_FLAGS_RELEASE "-Os -DNDEBUG -ffunction-sections -fdata-sections")
  set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -static-pie -Wl,--gc-sections -Wl,-T,${PROJECT_SOURCE_DIR}/cmake/no_unwind.ld -s")
  # A program at a random address has a table of all pointers in its data. lld packs it, which saves a third of a MB.
  if(LP_LLD)
    list(JOIN LP_USE_LLD " " use_lld)
    string(APPEND CMAKE_EXE_LINKER_FLAGS " ${use_lld} -Wl,--pack-dyn-relocs=relr")
  endif()
elseif(LP_SANITIZE OR LP_THREAD_SANITIZE)
  add_link_options(${LP_USE_LLD})
endif()

add_library(lp_flags INTERFACE)
target_include_directories(lp_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(lp_flags INTERFACE _GNU_SOURCE LP_VERSION="${PROJECT_VERSION}")
target_compile_options(lp_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
# With NDEBUG a variable that only an assertion reads is unused; the other build types still find the truly unused ones.
# gcc 12 at -O3 also takes what a call that returned LP_OK filled for uninitialised; -O2 does not.
target_compile_options(lp_flags INTERFACE
  $<$<CONFIG:Release>:-Wno-unused-variable> $<$<CONFIG:Release>:-Wno-unused-but-set-variable>
  $<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>
  $<$<CONFIG:Release>:-Wno-unused-function> $<$<CONFIG:Release>:-Wno-unused-parameter>)
target_link_libraries(lp_flags INTERFACE m)
include(lp_hardening)
if(LP_STATIC)
  target_compile_definitions(lp_flags INTERFACE LP_STATIC)
endif()

# The code that sanitizers insert hides ranges and initialisations from gcc; the other presets warn.
if(LP_SANITIZE OR LP_THREAD_SANITIZE)
  target_compile_options(lp_flags INTERFACE
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

if(LP_SANITIZE)
  set(lp_sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(lp_flags INTERFACE ${lp_sanitize})
  target_link_options(lp_flags INTERFACE ${lp_sanitize})
endif()
if(LP_THREAD_SANITIZE)
  target_compile_options(lp_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(lp_flags INTERFACE -fsanitize=thread)
endif()
if(LP_COVERAGE)
  target_compile_options(lp_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(lp_flags INTERFACE -fprofile-instr-generate)
endif()
if(LP_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "LP_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  target_compile_options(lp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
