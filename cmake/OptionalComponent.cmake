# spexd_optional_component(name target file): if `file`, which `target` makes, has not been built, `cmake --install` skips the
# component and says so. The component's own install() calls are OPTIONAL.
function(spexd_optional_component name target file)
  install(CODE "
    if(NOT EXISTS \"${file}\")
      message(STATUS \"Left out: ${name}, which has not been built (cmake --build ${PROJECT_BINARY_DIR} --target ${target})\")
    endif()" COMPONENT ${name})
endfunction()
