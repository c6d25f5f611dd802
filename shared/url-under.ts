/** The URL of a path under a base, whose query stays behind it: Azure has its `api-version` there. */
export const urlUnder = (base: string, path: string): URL => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return url
}
