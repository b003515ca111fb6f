# The packages that spexd uses, by their names in Debian 12 and Ubuntu 24.04 (scripts/install-deps.sh installs them).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(cfitsio REQUIRED IMPORTED_TARGET cfitsio)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(libisal REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(erfa REQUIRED IMPORTED_TARGET erfa)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(sleef REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(lapacke REQUIRED IMPORTED_TARGET lapacke)
if(SPEXD_WHEEL)
  # A wheel does not use the shared library, which would bring liblapack and libblas: OpenBLAS has all functions that are
  # called.
  find_library(SPEXD_LAPACKE liblapacke.a REQUIRED)
  set_target_properties(PkgConfig::lapacke PROPERTIES INTERFACE_LINK_LIBRARIES ${SPEXD_LAPACKE})
endif()
pkg_check_modules(openblas REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)

if(SPEXD_BUILD_TESTS)
  find_package(GTest REQUIRED)
  # The tests' HTTP client. The macros of its build determine the sizes of its classes.
  pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
  include(GoogleTest)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Two clones of the same sources share their objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# Libraries without a usable CMake target.
add_library(spexd_cli11 INTERFACE)
target_include_directories(spexd_cli11 SYSTEM INTERFACE ${CLI11_INCLUDE_DIR})
