#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which refusals of the kubelet a kill explains, and that it does not explain the others."""
import unittest

from outages import Denial, Outage, denials, ends, explained

REFUSED = "UnexpectedAdmissionError"
NO_HEALTHY = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
RESET = ("Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unavailable "
         "desc = error reading from server: read unix @->/x.sock: read: connection reset by peer, which is unexpected")
TOO_FEW = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected"
OUT_OF = "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 3, capacity: 3"


def said(time: float, count: int, answered: bool = True) -> dict:
    return {"time": time, "counts": {"nvidia.com/gpu": count}, "answered": answered}


class Outages(unittest.TestCase):
    def setUp(self) -> None:
        self.agent, self.kubelet = Outage("agent", 100.0), Outage("kubelet", 200.0)
        ends([self.agent, self.kubelet], [said(50, 8), said(100.1, 0), said(100.6, 8), said(200.1, 0, False), said(201, 0), said(201.5, 8)])

    def explained(self, reason: str, message: str, moment: float | None, in_first_list: bool = False) -> bool:
        return explained(reason, message, None if moment is None else Denial(moment, in_first_list), [self.agent, self.kubelet])

    def test_ends_when_all_are_offered_again(self) -> None:
        self.assertEqual((self.agent.end, self.kubelet.end), (100.6, 201.5))
        never = Outage("agent", 300.0)
        ends([never], [said(50, 8), said(300.1, 0), said(301, 7)])
        self.assertEqual(never.end, float("inf"))

    def test_one_that_is_over_before_the_next_question_has_no_length(self) -> None:
        last, followed, unknown = Outage("agent", 300.0), Outage("agent", 300.0), Outage("agent", 300.0)
        ends([last], [said(50, 8)])
        ends([followed], [said(50, 8), said(310, 0), said(310.5, 8)])
        ends([unknown], [said(50, 8), said(290, 7)])
        self.assertEqual((last.end, followed.end, unknown.end), (300.0, 300.0, float("inf")))

    def test_refusals_meanwhile_are_explained(self) -> None:
        for message in (NO_HEALTHY, RESET):
            self.assertTrue(self.explained(REFUSED, message, 100.3))
        self.assertTrue(self.explained(REFUSED, TOO_FEW, 206.0, in_first_list=True))
        self.assertTrue(self.explained("OutOfnvidia.com/gpu", OUT_OF, 101.5))

    def test_refusals_at_other_times_are_not(self) -> None:
        for moment in (99.9, 101.3, 150.0, None):
            self.assertFalse(self.explained(REFUSED, NO_HEALTHY, moment), moment)
        self.assertFalse(self.explained("OutOfnvidia.com/gpu", OUT_OF, 150.0))

    def test_too_few_devices_is_the_kubelets_own_only_when_it_began(self) -> None:
        self.assertFalse(self.explained(REFUSED, TOO_FEW, 100.3))
        self.assertFalse(self.explained(REFUSED, TOO_FEW, 201.7), "it had been through its list")
        self.assertFalse(self.explained(REFUSED, TOO_FEW, 100.3, in_first_list=True), "it had not been killed yet")

    def test_other_words_are_not(self) -> None:
        for reason, message in ((REFUSED, NO_HEALTHY.replace("nvidia.com/gpu", "nvidia.com/mig")), ("Evicted", NO_HEALTHY), (REFUSED, NO_HEALTHY + " And more."),
                                (REFUSED, RESET.replace("Unavailable", "InvalidArgument")), (REFUSED, ""), ("", "")):
            self.assertFalse(self.explained(reason, message, 100.3), message)

    def test_times_are_the_kubelets_own(self) -> None:
        line = 'I1115 14:30:54.534288     158 allocation_manager.go:619] "Pod admission denied" podUID="e" pod="default/churn-33" reason="R" message="m"\n'
        found = denials("I1115 14:30:54.1 1 x.go:1] other\n" + line)
        self.assertEqual(list(found), ["churn-33"])
        self.assertAlmostEqual(found["churn-33"].moment % 60, 54.534288, places=4)

    def test_the_first_list_is_each_kubelets_first(self) -> None:
        listed = 'I1115 14:30:%s.0     %s kubelet.go:2709] "SyncLoop ADD" source="api" pods=["default/a"]\n'
        denied = 'I1115 14:30:%s.5     %s allocation_manager.go:619] "Pod admission denied" podUID="e" pod="default/%s" reason="R" message="m"\n'
        found = denials(listed % (10, 7) + denied % (10, 7, "a") + listed % (20, 7) + denied % (20, 7, "b") + denied % (30, 8, "c") + listed % (31, 8) +
                        denied % (31, 8, "d"))
        self.assertEqual({pod: denial.in_first_list for pod, denial in found.items()}, {"a": True, "b": False, "c": False, "d": True})


unittest.main()
