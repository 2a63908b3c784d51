// SPDX-License-Identifier: Apache-2.0
#include "net/http/system_trust_internal.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace gantry::http {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string self_signed_certificate() {
  const SslKey key(EVP_EC_gen("P-256"));
  const SslCertificate certificate(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const SslBuffer text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), certificate.get());
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

SystemTrust found_in(const test::Tree& tree, const TrustEnvironment& environment = {}) {
  auto trust = find_system_trust(tree.host(), environment);
  EXPECT_TRUE(trust.ok()) << trust.error().text();
  return trust.ok() ? *std::move(trust) : SystemTrust{};
}

TEST(SystemTrust, FindsTheBundleOfEachDistribution) {
  for (const auto* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
        "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    test::Tree tree;
    tree.file(std::string_view(path).substr(1));
    EXPECT_EQ(found_in(tree).bundle, path);
  }
}

TEST(SystemTrust, FollowsLinksAndPassesOverBrokenOnes) {
  test::Tree tree;
  tree.link("etc/pki/tls/certs/ca-bundle.crt", "/no/where.pem")
      .link("etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/other.pem")
      .file("var/lib/ca-certificates/other.pem");
  EXPECT_EQ(found_in(tree).bundle, "/etc/ssl/ca-bundle.pem");
}

TEST(SystemTrust, ADirectoryWithoutABundleIsEnough) {
  test::Tree tree;
  tree.file("etc/ssl/certs/01234567.0");
  const auto trust = found_in(tree);
  EXPECT_EQ(trust.bundle, "");
  EXPECT_THAT(trust.directories, ElementsAre("/etc/ssl/certs"));
}

TEST(SystemTrust, TheEnvironmentComesBeforeTheWellKnownPlaces) {
  test::Tree tree;
  tree.file("etc/ssl/certs/ca-certificates.crt").file("own/ca.pem").file("own/hashed/01234567.0");
  const auto file = found_in(tree, {.file = "/own/ca.pem"});
  EXPECT_EQ(file.bundle, "/own/ca.pem");
  EXPECT_THAT(file.directories, IsEmpty());
  const auto directory = found_in(tree, {.directory = "/none:/own/hashed"});
  EXPECT_EQ(directory.bundle, "");
  EXPECT_THAT(directory.directories, ElementsAre("/own/hashed"));
}

TEST(SystemTrust, SaysWhatTheEnvironmentNamesInVain) {
  const test::Tree tree;
  const auto file = find_system_trust(tree.host(), {.file = "/own/ca.pem"});
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().text(), HasSubstr("SSL_CERT_FILE names /own/ca.pem"));
  const auto directory = find_system_trust(tree.host(), {.directory = "/own"});
  ASSERT_FALSE(directory.ok());
  EXPECT_THAT(directory.error().text(), HasSubstr("SSL_CERT_DIR names /own"));
}

TEST(SystemTrust, NamesAllPlacesIfThereIsNone) {
  test::Tree tree;
  tree.directory("etc/ssl/certs");
  const auto trust = find_system_trust(tree.host(), {});
  ASSERT_FALSE(trust.ok());
  EXPECT_EQ(trust.error().code(), Errc::NotFound);
  EXPECT_THAT(trust.error().text(),
              AllOf(HasSubstr("/etc/ssl/certs/ca-certificates.crt"), HasSubstr("/etc/ssl/cert.pem"),
                    HasSubstr("package ca-certificates")));
}

TEST(SystemTrust, TrustsTheCertificatesOfTheBundle) {
  test::Tree tree;
  tree.file("etc/ssl/cert.pem", "# a comment\n" + self_signed_certificate());
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  const auto done = trust_system(context.get(), tree.host(), found_in(tree));
  ASSERT_TRUE(done.ok()) << done.error().text();
  const auto* objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context.get()));
  EXPECT_EQ(sk_X509_OBJECT_num(objects), 1);
}

TEST(SystemTrust, ABundleWithoutCertificatesIsAnErrorThatNamesIt) {
  test::Tree tree;
  tree.file("etc/ssl/cert.pem", "no certificates here\n");
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  const auto done = trust_system(context.get(), tree.host(), found_in(tree));
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), HasSubstr("/etc/ssl/cert.pem: "));
}

}  // namespace
}  // namespace gantry::http
