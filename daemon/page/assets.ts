import { readFileSync } from 'node:fs'
import { packageFolder } from '../../shared/version.ts'
import { readAsset } from '../util/assets.ts'

/** The files of the page by their names, each read once at the start: an update may replace or remove them. */
export const loadPageAssets = (): ReadonlyMap<string, PageAsset> =>
  new Map([
    [
      'page.css',
      { type: 'text/css', text: readAsset('page/tokens.css') + readAsset('ui/page.css') },
    ],
    ['live.js', { type: 'text/javascript', text: readAsset('ui/live.js') }],
    // The build copies it out of its package.
    ['idiomorph.js', { type: 'text/javascript', text: readBuilt('idiomorph.js') }],
  ])

type PageAsset = { readonly type: string; readonly text: string }

const built = new Map<string, string>()

const readBuilt = (name: string): string => {
  const text = built.get(name) ?? readFileSync(new URL(`dist/bin/${name}`, packageFolder), 'utf8')
  built.set(name, text)
  return text
}
