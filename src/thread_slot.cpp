#include "elidex/thread_slot.hpp"
