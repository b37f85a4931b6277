# Copies the public headers of SOURCE to OUT/isonorm, where they include each other as "isonorm/core/tensor.h": a user's
# own "core/tensor.h" and ours then cannot hide each other. Compilers treat them as system headers, even after
# pkg-config's -I, so a strict program gets no warnings about them. (-isystem /usr/include instead would break the
# standard library's own includes.) Unchanged files keep their time stamps; files whose source is gone are removed.
# cmake -D SOURCE=dir -D OUT=dir -D HEADERS=a.h;b/c.h -P public_headers.cmake
file(GLOB_RECURSE stale RELATIVE ${OUT}/isonorm ${OUT}/isonorm/*.h)
foreach(header IN LISTS HEADERS)
  file(READ ${SOURCE}/${header} new)
  string(REGEX REPLACE "#include \"([^\"]+)\"" "#include \"isonorm/\\1\"" new "${new}")
  set(old "")
  if(EXISTS ${OUT}/isonorm/${header})
    file(READ ${OUT}/isonorm/${header} old)
  endif()
  string(PREPEND new "#pragma GCC system_header\n")
  if(NOT old STREQUAL new)
    file(WRITE ${OUT}/isonorm/${header} "${new}")
  endif()
  list(REMOVE_ITEM stale ${header})
endforeach()
foreach(header IN LISTS stale)
  file(REMOVE ${OUT}/isonorm/${header})
endforeach()
