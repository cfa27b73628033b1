#pragma once

#include <boost/container/deque.hpp>

namespace foretrace::sim {

/// First in, first out. An empty std::deque takes half a KiB from the heap; most queues of a large
/// program are empty to the end.
template <class T>
using Queue = boost::container::deque<T>;

}  // namespace foretrace::sim
