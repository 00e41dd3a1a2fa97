{{ config(materialized='table') }}
select count(*) as c from {{ ref('large') }}
