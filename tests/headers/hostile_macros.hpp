// Macros that windows.h, complex.h, X11 and old compilers' headers define, in front of the library's headers. The
// standard library's own headers come first: min and max with arguments break those of GNU.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define IN
#define OUT
#define ERROR 0
#define DELETE 0x00010000
#define I _Complex_I
#define OPTIONAL
#define None 0L
#define Status int
#define Bool int
#define True 1
#define False 0
