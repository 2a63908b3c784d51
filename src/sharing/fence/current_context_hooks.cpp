// SPDX-License-Identifier: Apache-2.0
// Hooks that change a thread's current context: the gate remembers on which context's default
// stream it launched.
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"

using namespace gantry::fence;

namespace {

CUresult changed(CUresult result) {
  gate_context_changed();
  return result;
}

}  // namespace

CUresult cuCtxSetCurrent(CUcontext context) {
  return changed(real().cuCtxSetCurrent(context));
}
CUresult cuCtxPushCurrent(CUcontext context) {
  return changed(real().cuCtxPushCurrent(context));
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return changed(real().cuCtxPushCurrent_v2(context));
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  return changed(real().cuCtxPopCurrent(context));
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return changed(real().cuCtxPopCurrent_v2(context));
}
