// SPDX-License-Identifier: Apache-2.0
// A key that was made for tests with gpg, with a subkey that signs.
#pragma once

namespace gantry::driver_package {

inline constexpr const char* kTestKeyFingerprint = "6DEC1F918D866058BECE610EF113AE1688EB8069";
inline constexpr const char* kTestKey =
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    "\n"
    "mDMEav+MCBYJKwYBBAHaRw8BAQdAhM5cO7/wtljkilKHDJ/8B1o0LXyg9ykKqnKB\n"
    "ukHskYq0HUEgdmVuZG9yIDx2ZW5kb3JAZXhhbXBsZS5vcmc+iJYEExYIAD4WIQRt\n"
    "7B+RjYZgWL7OYQ7xE64WiOuAaQUCav+MCAIbAwUJBdz1OAULCQgHAgYVCgkICwIE\n"
    "FgIDAQIeAQIXgAAKCRDxE64WiOuAaci9AP95ORzsQgtv0FVED3AcIcGQ/9YP8Kmn\n"
    "mwbjG9zOkJCLOwD8Dx0DPo5hVC6zX85xsxkHx8vyh+TKR3UUu5Aokg6CNQS4MwRq\n"
    "/4wJFgkrBgEEAdpHDwEBB0DLlc5GPtCRSz8gQueiJ1sGf0t4lne6SHBC5C20GL5k\n"
    "a4j1BBgWCAAmFiEEbewfkY2GYFi+zmEO8ROuFojrgGkFAmr/jAkCGwIFCQXc9TcA\n"
    "gQkQ8ROuFojrgGl2IAQZFggAHRYhBHNCSSngodRziXRHvyQw3MnBZ6e+BQJq/4wJ\n"
    "AAoJECQw3MnBZ6e+GSwBAKos6M+lj1V6LI2t+yxjg0sZcWTMtCBpQg50qyLVd1iU\n"
    "AQDjUz24WVAF/q3nrTWnZPhm02fKLtdbY+N3AItU/9pEDyB8AP4skCs9Gcctrmms\n"
    "ZUisefN9rZOMhCYHhS/Mwd2WhzSPwgD/fIYXcLIrHn0gJzY5owxQBBmJ+2Diu4wz\n"
    "n7maqyEVJQk=\n"
    "=0vNu\n"
    "-----END PGP PUBLIC KEY BLOCK-----\n";

}  // namespace gantry::driver_package
