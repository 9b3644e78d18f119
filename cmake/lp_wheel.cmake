# The Python wheel (pyproject.toml): scikit-build-core installs the command and the runtime into the package's folder,
# and with them the linker that `compile` runs.
if(SKBUILD)
  find_program(LP_WHEEL_LLD NAMES ld.lld-19 REQUIRED)
  file(REAL_PATH ${LP_WHEEL_LLD} lld)
  install(PROGRAMS ${lld} DESTINATION bin RENAME ld.lld-19 COMPONENT wheel)
endif()
