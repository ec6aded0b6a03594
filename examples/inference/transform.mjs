/** The input of the model: float32 [n, 3, 32, 32]. */
export const TRANSFORM = [
  { name: 'resize', size: 32 },
  { name: 'centerCrop', size: 32 },
  { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
];
