# What keeps a memory error in a release build from becoming an attacker's code (docs/security.md): stack protectors,
# checked calls of libc, marked targets of indirect calls, random addresses, and pointers to functions of libraries that
# are read-only before main. tests/tools/hardening.sh reads them back. Emitted code and kernels have flags of their own.
include(CheckPIESupported)
include(CheckCCompilerFlag)
if(NOT LP_STATIC) # its own flags link it at a random address (lp_flags.cmake)
  check_pie_supported(LANGUAGES C)
endif()
check_c_compiler_flag(-fcf-protection=full LP_HAS_CF_PROTECTION) # x86
check_c_compiler_flag(-mbranch-protection=standard LP_HAS_BRANCH_PROTECTION) # aarch64
set(lp_hardening -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
if(LP_HAS_CF_PROTECTION)
  list(APPEND lp_hardening -fcf-protection=full)
elseif(LP_HAS_BRANCH_PROTECTION)
  list(APPEND lp_hardening -mbranch-protection=standard)
endif()
target_compile_options(lp_flags INTERFACE $<$<CONFIG:Release>:${lp_hardening}>)
target_link_options(lp_flags INTERFACE $<$<CONFIG:Release>:-Wl,-z,relro,-z,now,-z,noexecstack>)
