# SPDX-License-Identifier: Apache-2.0
"""Keys, certificates and kubeconfigs of a cluster that lives for minutes."""
import pathlib
import subprocess

# Token, user and groups of each party. The controllers of the controller manager share one strong identity.
PARTIES = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    # As if it ran in its pod: only with the rights that deploy/gpushare gives to that service account.
    "extender": ("system:serviceaccount:kube-system:gpushare-schd-extender", "system:serviceaccounts"),
    "hami": ("system:serviceaccount:kube-system:hami-scheduler", "system:serviceaccounts"),
    "kubelet": ("system:node:gpu-node", "system:nodes"),
    "kube-proxy": ("system:kube-proxy", "system:node-proxier"),
}


def openssl(*argv) -> None:
    subprocess.run(["openssl", *(str(a) for a in argv)], check=True, capture_output=True)


def make(place: pathlib.Path, address: str, service_address: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *curve, "-subj", "/CN=gantry-test-ca", "-keyout", place / "ca.key", "-out", place / "ca.crt")
    names = f"subjectAltName=IP:{address},IP:{service_address},IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc"
    openssl("req", "-x509", *curve, "-subj", "/CN=kube-apiserver", "-addext", names, "-addext", "basicConstraints=critical,CA:FALSE",
            "-CA", place / "ca.crt", "-CAkey", place / "ca.key", "-keyout", place / "api.key", "-out", place / "api.crt")
    openssl("genrsa", "-out", place / "accounts.key", "2048")
    openssl("rsa", "-in", place / "accounts.key", "-pubout", "-out", place / "accounts.pub")
    rows = [f'{token(name)},{user},{name},"{groups}"' for name, (user, groups) in PARTIES.items()]
    (place / "tokens.csv").write_text("\n".join(rows) + "\n")
    for name in PARTIES:
        (place / f"{name}.kubeconfig").write_text(kubeconfig(place, name, address))


def token(name: str) -> str:
    return f"token-of-{name}"


def kubeconfig(place: pathlib.Path, name: str, address: str) -> str:
    return f"""apiVersion: v1
kind: Config
clusters:
- name: gantry
  cluster: {{server: "https://{address}:6443", certificate-authority: {place}/ca.crt}}
users:
- name: {name}
  user: {{token: {token(name)}}}
contexts:
- name: gantry
  context: {{cluster: gantry, user: {name}}}
current-context: gantry
"""
