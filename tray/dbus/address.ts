import { join } from 'node:path'

/**
 * The sockets at which the session bus may be, in the order to try, for `net.connect`: from
 * DBUS_SESSION_BUS_ADDRESS, else `$XDG_RUNTIME_DIR/bus` (D-Bus specification, "Server Addresses").
 * Only local sockets; an abstract one begins with NUL. Empty when there is none to try.
 */
export const busSockets = (env: NodeJS.ProcessEnv): string[] => {
  const runtime = env['XDG_RUNTIME_DIR']
  const ofUser = runtime ? [join(runtime, 'bus')] : []
  const address = env['DBUS_SESSION_BUS_ADDRESS']
  if (!address) return ofUser
  return address.split(';').flatMap((one) => {
    const colon = one.indexOf(':')
    if (one.slice(0, colon) !== 'unix') return []
    const keys = new Map(
      one
        .slice(colon + 1)
        .split(',')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), unescape(pair)]),
    )
    const path = keys.get('path')
    if (path) return [path]
    const abstract = keys.get('abstract')
    if (abstract) return [`\0${abstract}`]
    return keys.get('runtime') === 'yes' ? ofUser : []
  })
}

const unescape = (pair: string): string => {
  const value = pair.slice(pair.indexOf('=') + 1)
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
