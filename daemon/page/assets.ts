import { readFileSync } from 'node:fs'
import { packageFolder } from '../../shared/version.ts'
import { readAsset } from '../util/assets.ts'

/** The files of the page by their names, read at the start, as an update may replace them. */
export const loadPageAssets = (): ReadonlyMap<string, PageAsset> =>
  new Map([
    ['page.css', { type: 'text/css', text: readAsset('ui/page.css') }],
    ['live.js', { type: 'text/javascript', text: readAsset('ui/live.js') }],
    // The build copies it out of its package.
    ['idiomorph.js', { type: 'text/javascript', text: readBuilt('idiomorph.js') }],
  ])

type PageAsset = { readonly type: string; readonly text: string }

const readBuilt = (name: string): string =>
  readFileSync(new URL(`dist/bin/${name}`, packageFolder), 'utf8')
