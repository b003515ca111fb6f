# How targets of this project are compiled.

# Warnings, sanitizers and the include root of one target; called for each.
function(spexd_target target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-psabi -fno-math-errno)
  if(SPEXD_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SPEXD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${SPEXD_SANITIZE})
  endif()
endfunction()

# spexd_library(NAME name SOURCES a.cc ... DEPENDS target ...): a static library.
function(spexd_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPENDS})
  spexd_target(${ARG_NAME})
endfunction()

# spexd_test(NAME name SOURCES a.cc ... DEPENDS target ... [LABELS l ...] [ARGUMENTS a ...] [TIMEOUT s]): a GoogleTest program, one ctest entry.
function(spexd_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SOURCES;DEPENDS;LABELS;ARGUMENTS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  spexd_target(${ARG_NAME})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} ${ARG_ARGUMENTS})
  set_tests_properties(${ARG_NAME} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT}
    LABELS "${ARG_LABELS}"
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp;UBSAN_OPTIONS=print_stacktrace=1;SPEXD_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
