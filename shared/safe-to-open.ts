/** True for an address that a person's browser may be sent to: https, or http on loopback. */
export const isSafeToOpen = (address: string): boolean => {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname))
  )
}
