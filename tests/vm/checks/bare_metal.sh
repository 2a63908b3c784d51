# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A machine that is not a guest, as far as its processor and its firmware say, with an IOMMU: what doctor says of copies between GPUs.
check "doctor knows that this is bare metal" doctor_says guest.kind ok "bare metal"
check "the IOMMU is on" doctor_says iommu.off ok "the IOMMU is on"
check "it translates copies between GPUs" doctor_says iommu.translating info "the IOMMU translates for"
check "bridges redirect them" doctor_says iommu.acs warn "copies between GPUs go through"
check "a GPU can be passed through" bind_and_release $t4
