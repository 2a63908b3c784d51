#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "nvidia-bug-report.sh: this driver is simulated; \`gantry report\` collects what is known of the machine."
