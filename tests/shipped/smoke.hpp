// What the smoke test offers, as a program and as a plug-in: C functions, so that a host can look
// them up.
#pragma once

extern "C" {

// Uses each part of the library, from threads that come and go. `directory`: an empty one, for
// databases. Leaves static objects with a thread of their own behind. Returns 0; after the first
// wrong answer it prints the line and returns 1.
int smoke(const char* directory);

// A few calls on the calling thread, and on one that comes and goes. Returns 0 if the answers are
// right.
int smoke_touch();

// Threads that use the library for ever. They use nothing that a static object's destructor ends.
void smoke_leave_threads_running();
}
