import { existsSync, readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { FileError, reasonOf } from '@shardtool/base';

let trust: SecureContext | undefined;

/**
 * Certificate authorities that TLS connections trust. They are read once, because reading a file of all authorities takes longer
 * than making a connection. Throws {@link FileError} if the file that AWS_CA_BUNDLE names cannot be read.
 */
export function trusted(): { readonly secureContext: SecureContext } {
  trust ??= readTrust();
  return { secureContext: trust };
}

function readTrust(): SecureContext {
  const { AWS_CA_BUNDLE: bundle, NODE_EXTRA_CA_CERTS: extra } = process.env;
  // Without a bundle, Node trusts its own authorities and those of NODE_EXTRA_CA_CERTS.
  if (!bundle) return createSecureContext();
  try {
    const more = extra && existsSync(extra) ? [readFileSync(extra)] : [];
    return createSecureContext({ ca: [readFileSync(bundle), ...more] });
  } catch (cause) {
    const message = `${bundle}, which AWS_CA_BUNDLE names, cannot be read: ${reasonOf(cause)}.`;
    throw new FileError({ path: bundle }, message, { cause });
  }
}
