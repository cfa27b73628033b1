#pragma once

#include <boost/container/deque.hpp>

namespace foretrace::sim {

/// First in, first out. An empty std::deque takes half a KiB from the heap; most queues of a large
/// program are empty to the end. Boost's blocks would be half a KiB: two entries of a stream.
template <class T>
using Queue = boost::container::deque<
    T, void, boost::container::deque_options<boost::container::block_bytes<2048>>::type>;

}  // namespace foretrace::sim
