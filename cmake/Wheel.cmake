# What a wheel is linked with, so that it runs on other distributions than the one that built it.
if(NOT SPEXD_WHEEL)
  return()
endif()

# GCC 12 calls std::condition_variable::wait of its own libstdc++, GLIBCXX_3.4.30. All other symbols are there in those of
# glibc 2.34 and GCC 11: RHEL 9 and Ubuntu 22.04 have no newer ones.
foreach(target spex spexd spexd_native spexd_cuda)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/condition_variable_wait.cc)
    target_link_options(${target} PRIVATE -Wl,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
  endif()
endforeach()
